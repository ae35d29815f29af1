"""Handle the signals that stop a program, so that the program cleans up before it ends."""

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
"""Time in seconds in which a program may clean up after a signal.

During this time, the program ignores all later signals.
"""

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def terminate_as_exit() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, so that context managers clean up.

    SIGINT raises KeyboardInterrupt. After the first signal, the process ignores all signals for
    LEAVES_S seconds, so that it can clean up. Afterwards, another signal raises an exception again.
    This second exception is necessary if Python has dropped the first exception, as it does in
    destructors and in callbacks of C code.

    Enter this context in the main thread, before the context of a server. If the process already
    ignores a signal (as with nohup), the process continues to ignore this signal.
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
    """Delay the signals that stop a program until the context ends.

    In other threads than the main thread, the context has no effect, because Python runs signal
    handlers only in the main thread. A signal mask would not delay the handlers: the kernel would
    deliver the signal to another thread, and Python would run the handler in the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python runs signal handlers only in the main thread
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
