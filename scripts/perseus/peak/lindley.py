"""Compute start and end times of requests at a first-come first-served server by Lindley's
recursion.

The recursion is a running maximum (Lindley, Proc. Cambridge Phil. Soc. 48, 1952). For each request,
the module subtracts the service times of all earlier requests from the arrival time. The total idle
time of the server before a request is the maximum of these differences, over this request and all
earlier requests.
"""

from __future__ import annotations

import numpy as np

from perseus.peak.stats import Floats


def idle_s(arrival_s: Floats, before_s: Floats) -> Floats:
    """Return the total idle time of the server before each request. The queue is empty before the
    first request.

    `arrival_s` ascends. `before_s` is the total service time of all earlier requests. The last axis
    of both arrays runs over the requests.
    """
    idle: Floats = np.maximum.accumulate(arrival_s - before_s, axis=-1)
    return idle


def departures_s(arrival_s: Floats, work_s: Floats) -> Floats:
    """Return the time at which each request ends; shape (n,), like `arrival_s` and `work_s`."""
    done_s = np.cumsum(work_s)
    return done_s + idle_s(arrival_s, done_s - work_s)
