"""Compute start and end times of requests at a first-come first-served server by Lindley's
recursion.

The recursion is a running maximum (Lindley, Proc. Cambridge Phil. Soc. 48, 1952). The total idle
time of the server before request i is the largest of the values d(1) to d(i), where d(j) is the
arrival time of request j minus the service times of all earlier requests.
"""

from __future__ import annotations

import numpy as np

from perseus.peak.stats import Floats


def idle_s(arrival_s: Floats, before_s: Floats) -> Floats:
    """Return the total idle time of the server before each request, in seconds. The queue is empty
    before the first request.

    `arrival_s` ascends. `before_s` is, for each request, the total service time of all earlier
    requests. The last axis of both arrays runs over the requests.
    """
    idle: Floats = np.maximum.accumulate(arrival_s - before_s, axis=-1)
    return idle


def departures_s(arrival_s: Floats, work_s: Floats) -> Floats:
    """Return the time in seconds at which the server finishes each request; shape (n,), like
    `arrival_s` and `work_s`."""
    done_s = np.cumsum(work_s)
    return done_s + idle_s(arrival_s, done_s - work_s)
