"""Lindley's recursion: start and end times of requests at a first-come first-served server.

As a running maximum (Lindley, Proc. Cambridge Phil. Soc. 48, 1952): by the time that the server
begins a request, it has been idle for as long as that request, or any before it, came later than
the work before it would have let it begin.
"""

from __future__ import annotations

import numpy as np

from perseus.peak.stats import Floats


def idle_s(arrival_s: Floats, before_s: Floats) -> Floats:
    """Idle time of the server before each request, from an empty queue on.

    `arrival_s` ascends, `before_s` is the work of all requests before each; the last axis of both
    is that of the requests.
    """
    idle: Floats = np.maximum.accumulate(arrival_s - before_s, axis=-1)
    return idle


def departures_s(arrival_s: Floats, work_s: Floats) -> Floats:
    """End time of each request; shape (n,), like `arrival_s` and `work_s`."""
    done_s = np.cumsum(work_s)
    return done_s + idle_s(arrival_s, done_s - work_s)
