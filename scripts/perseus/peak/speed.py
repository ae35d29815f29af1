"""Measure the speed of a busy server in saturation probes (docs/explanation/search.md).

A saturation probe is a short closed loop in which requests always wait for the server. The speed in
a probe is the speed that the server has near its limit. Single requests to an idle server would
show another speed: while a server is idle, its data leave the caches of the processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from perseus.peak import stats
from perseus.peak.stats import Floats
from perseus.traffic.requests import Requests

IN_FLIGHT = 4
"""In a saturation probe, each tenant with load has this number of requests in flight."""

SHORTEST_S, LONGEST_S, REQUESTS = 1.5, 20.0, 30
"""A probe of a single tenant lasts REQUESTS times the latency without load, but at least SHORTEST_S
and at most LONGEST_S seconds."""

ROUND_S, ROUND_LONGEST_S, ROUND_REQUESTS = 0.7, 5.0, 20
"""If several tenants share the server, probes run in rounds. Each window of a round lasts
ROUND_REQUESTS times the latency without load of the slowest tenant, but at least ROUND_S and at
most ROUND_LONGEST_S seconds."""

SURE = 4.0
"""Number of standard errors by which two speeds must differ, so that the difference is significant.
The number is large, because standard errors from few batches are inaccurate."""

MEDIAN = float(np.sqrt(np.pi / 2))
"""Standard error of the median divided by the standard error of the mean, for normally distributed
values."""


PARTS = 100
"""Largest number of service times that `work_s` returns."""


@dataclass(frozen=True)
class Speed:
    """The speed of a busy server: its responses per second, and the standard error of the logarithm
    of this rate.

    `gaps_s`, shape (n,), contains the times between successive responses.
    """

    rate_rps: float
    log_error: float
    gaps_s: Floats = field(default_factory=lambda: np.empty(0), compare=False)


NO_SPEED = Speed(np.nan, np.nan)
"""Unknown speed, because the tenant has no load or too few responses."""


def speed(requests: Requests, from_ns: int) -> Speed:
    """Return the speed of a server in a closed loop from the time `from_ns` to the end; NO_SPEED
    for fewer than two responses.

    The function computes the mean time between responses in each of several batches of consecutive
    responses. The speed is 1 / the median of these means. If other processes slow down the server
    during a few batches, the median hardly changes.
    """
    done_s = np.sort(requests.done_ns[requests.answered & (requests.done_ns >= from_ns)]) / 1e9
    gaps_s = np.diff(done_s)
    steps_s = [float(part.mean()) for part in stats.batches(gaps_s, stats.BATCHES)]
    usual_s = float(np.median(steps_s)) if steps_s else 0.0
    if usual_s == 0:
        return NO_SPEED
    error = float(np.std(steps_s, ddof=1)) if len(steps_s) > 1 else usual_s
    return Speed(1 / usual_s, MEDIAN * error / usual_s / np.sqrt(len(steps_s)), gaps_s)


def mean_rps(seen: Speed) -> float:
    """Return the mean throughput of a window in responses per second, from the gaps between its
    responses; NaN for fewer than two responses.

    If a server serves all tenants in the order of arrival, the responses of a tenant come in groups
    of IN_FLIGHT, with a pause before each group. The time from the first to the last response lacks
    one of these pauses, and would overstate the throughput. Therefore the function uses the time
    from the mean of the first IN_FLIGHT response times to the mean of the last IN_FLIGHT response
    times. In this time, a steady server sends all responses except IN_FLIGHT of them.
    """
    done_s = np.concatenate([[0.0], np.cumsum(seen.gaps_s)])
    ends = min(IN_FLIGHT, len(done_s) // 2)
    if not ends:
        return np.nan
    return float((len(done_s) - ends) / (done_s[-ends:].mean() - done_s[:ends].mean()))


def combined(seen: Sequence[Speed]) -> Speed:
    """Return the median speed over several windows, with the gaps of all windows; NO_SPEED if the
    speed is unknown in every window."""
    known = [each for each in seen if np.isfinite(each.rate_rps)]
    if not known:
        return NO_SPEED
    rate_rps = float(np.median([each.rate_rps for each in known]))
    squares = np.mean(np.square([each.log_error for each in known]))
    error = float(np.sqrt(squares / len(known)))
    return Speed(rate_rps, error, np.concatenate([each.gaps_s for each in known]))


def work_s(seen: Sequence[Speed]) -> Floats:
    """Return at most PARTS values that represent the distribution of a tenant's service time, in
    seconds.

    A service time is the time between two responses of the busy server. The function sorts the
    service times from all probes `seen` of the tenant, divides the sorted times into groups of
    nearly equal size, and returns the mean of each group.
    """
    gaps_s = np.sort(np.concatenate([np.empty(0), *(each.gaps_s for each in seen)]))
    parts = np.array_split(gaps_s, min(PARTS, len(gaps_s)) or 1)
    return np.array([part.mean() for part in parts if len(part)])


def duration_s(unloaded_ms: Floats) -> float:
    """Return the length in seconds of a saturation probe of a single tenant. `unloaded_ms` contains
    the tenant's latencies without load."""
    alone_s = float(np.median(unloaded_ms)) / 1000
    return float(np.clip(REQUESTS * alone_s, SHORTEST_S, LONGEST_S))


def round_window_s(unloaded_ms: Sequence[Floats]) -> float:
    """Return the length in seconds of every window of a round. `unloaded_ms` contains the latencies
    without load of each tenant; the tenant with the highest median determines the length."""
    slowest_s = max(float(np.median(each)) for each in unloaded_ms) / 1000
    return float(np.clip(ROUND_REQUESTS * slowest_s, ROUND_S, ROUND_LONGEST_S))


def change(first: Sequence[Speed], last: Sequence[Speed]) -> float:
    """Return the factor, at least 1, by which the speed rose or fell from the first to the last
    probe.

    `first` and `last` contain one speed per tenant. The result is the largest of the tenants'
    factors. If the two speeds of a tenant do not differ significantly (SURE), the factor of this
    tenant is 1. Differences are seldom significant for slow models, because their probes contain
    few responses.
    """
    found = [1.0]
    for a, b in zip(first, last, strict=True):
        ratio, error = b.rate_rps / a.rate_rps, np.hypot(a.log_error, b.log_error)
        if abs(np.log(ratio)) > SURE * error:
            found.append(max(ratio, 1 / ratio))
    return max(found)


def wander(seen: Sequence[Sequence[Speed]]) -> float:
    """Return the standard deviation of log(speed) between probes, without the part that measurement
    errors cause.

    `seen` contains, for each probe, the speed of each tenant. For each tenant, the function
    computes the variance of log(speed), minus the variance of the measurement errors. The result is
    the square root of the mean of these values.
    """
    variances = []
    for of_tenant in zip(*seen, strict=True):
        logs = np.log([each.rate_rps for each in of_tenant if np.isfinite(each.rate_rps)])
        errors = [each.log_error for each in of_tenant if np.isfinite(each.log_error)]
        if len(logs) > 1:
            variances.append(float(np.var(logs, ddof=1) - np.mean(np.square(errors))))
    return float(np.sqrt(max(0.0, float(np.mean(variances))))) if variances else 0.0
