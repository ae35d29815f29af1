"""Compute when a first-come first-served server finishes each request, by Lindley's recursion
(Proc. Cambridge Phil. Soc. 48, 1952).

The recursion is a running maximum. Let d(j) be the arrival time of request j minus the total
service time of all earlier requests. Then the total idle time of the server before request i is the
largest of the values d(1) to d(i).
"""

from __future__ import annotations

import numpy as np

from perseus.peak.stats import Floats


def idle_s(arrival_s: Floats, before_s: Floats) -> Floats:
    """Return the total idle time in seconds of the server from time 0 to the start of each request.

    The queue is empty before the first request. `arrival_s` contains ascending arrival times.
    `before_s` contains, for each request, the total service time of all earlier requests. The last
    axis of both arrays runs over the requests.
    """
    idle: Floats = np.maximum.accumulate(arrival_s - before_s, axis=-1)
    return idle


def departures_s(arrival_s: Floats, work_s: Floats) -> Floats:
    """Return the time in seconds at which the server finishes each request; shape (n,), like
    `arrival_s` and `work_s`."""
    done_s = np.cumsum(work_s)
    return done_s + idle_s(arrival_s, done_s - work_s)
