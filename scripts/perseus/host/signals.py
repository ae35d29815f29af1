"""Handle the signals that end a program, so that it cleans up."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

LEAVES_S: Final = 30.0
"""How long a program may take to clean up after a signal, before another one counts."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def terminate_as_exit() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that context managers clean up.

    Only the first signal raises (SIGINT raises KeyboardInterrupt). Signals of the next LEAVES_S
    seconds are ignored, because the process is cleaning up. After that, a signal raises again,
    because Python loses an exception in a destructor or a callback of C code. Enter it from the
    main thread, outside of a launcher. A signal that is ignored (nohup) stays ignored.
    """
    signalled_s = -math.inf

    def leave(number: int, _frame: FrameType | None) -> None:
        nonlocal signalled_s
        if time.monotonic() - signalled_s < LEAVES_S:
            return
        signalled_s = time.monotonic()
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    previous = {
        number: signal.signal(number, leave)
        for number in _STOP_SIGNALS
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Delay the signals that stop a program until the end of the block.

    A signal mask does not work: the kernel delivers the signal to another thread, and Python still
    runs its handler in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs handlers in the main thread only
        return
    pending: list[int] = []

    def keep(number: int, _frame: FrameType | None) -> None:
        pending.append(number)

    previous = {
        number: signal.signal(number, keep)
        for number in _STOP_SIGNALS
        if signal.getsignal(number) is not None
    }
    try:
        yield
    finally:
        for stopping, handler in previous.items():
            signal.signal(stopping, handler)
        for kept in dict.fromkeys(pending):
            signal.raise_signal(kept)
