"""Let the signals that end a program end it in order."""

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
"""How long a program that was told to end is taken to be on its way out."""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def terminate_as_exit() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit while active, so that contexts are left in order.

    Only the first signal raises (SIGINT as KeyboardInterrupt); those of the next LEAVES_S seconds
    are ignored, because the process is on its way out already and must not be interrupted while it
    cleans up. After that one raises again: Python loses an exception in a destructor or a callback
    of C code. To be entered from the main thread, outside of a launcher. A signal that is ignored
    (nohup) stays ignored.
    """
    told_s = -math.inf

    def leave(number: int, _frame: FrameType | None) -> None:
        nonlocal told_s
        if time.monotonic() - told_s < LEAVES_S:
            return
        told_s = time.monotonic()
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
    """Keep the signals that stop a program until the end of the block.

    A signal mask would not do: the kernel hands the signal to another thread, and Python still runs
    its handler in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python's handlers never interrupt other threads
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
