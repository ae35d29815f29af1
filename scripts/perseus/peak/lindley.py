"""Lindley's recursion: start and end times of requests at a first-come first-served server.

The recursion is computed as a running maximum (Lindley, Proc. Cambridge Phil. Soc. 48, 1952). The
idle time before a request is the largest difference, over this request and all before it, between
the arrival time and the work of all earlier requests.
"""

from __future__ import annotations

import numpy as np

from perseus.peak.stats import Floats


def idle_s(arrival_s: Floats, before_s: Floats) -> Floats:
    """Return the idle time of the server before each request; the queue is empty at first.

    `arrival_s` ascends, `before_s` is the work of all requests before each request. The last axis
    of both is the axis of the requests.
    """
    idle: Floats = np.maximum.accumulate(arrival_s - before_s, axis=-1)
    return idle


def departures_s(arrival_s: Floats, work_s: Floats) -> Floats:
    """Return the end time of each request; shape (n,), like `arrival_s` and `work_s`."""
    done_s = np.cumsum(work_s)
    return done_s + idle_s(arrival_s, done_s - work_s)
