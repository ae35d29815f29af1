"""Measure the speed of a busy server in saturation probes (docs/explanation/search.md).

A saturation probe is a short closed loop with waiting requests. A server works as it does near its
limit only while requests wait. Without load, the data of the server leave the caches of the
processor, which changes the latencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from perseus.peak import stats
from perseus.peak.stats import Floats
from perseus.traffic.requests import Requests

IN_FLIGHT = 4
"""Number of requests in flight of each tenant with load, in a saturation probe."""

SHORTEST_S, LONGEST_S, REQUESTS = 1.5, 20.0, 30
"""A probe lasts REQUESTS times the latency without load, but at least SHORTEST_S and at most
LONGEST_S seconds."""

ROUND_S, ROUND_LONGEST_S, ROUND_REQUESTS = 0.7, 5.0, 20
"""A window of a round lasts ROUND_REQUESTS times the unloaded latency of the slowest tenant, but at
least ROUND_S and at most ROUND_LONGEST_S seconds."""

SURE = 4.0
"""Least number of standard errors by which two speeds differ significantly. The number is large,
since the standard errors come from few batches. For a fast model with exponential service times,
the test still detects every relevant change."""

MEDIAN = float(np.sqrt(np.pi / 2))
"""Ratio of the standard errors of the median and of the mean of normally distributed values."""


PARTS = 100
"""Largest number of service times in a result. The times between responses are sorted and divided
into this number of parts, and the result contains the mean of each part."""


@dataclass(frozen=True)
class Speed:
    """The responses per second of a busy server, and the standard error of the logarithm of this
    rate.

    `gaps_s`, shape (n,), contains the times between the responses.
    """

    rate_rps: float
    log_error: float
    gaps_s: Floats = field(default_factory=lambda: np.empty(0), compare=False)


NO_SPEED = Speed(np.nan, np.nan)
"""Speed of a tenant without load."""


def speed(requests: Requests, from_ns: int) -> Speed:
    """Return the speed of a server in a closed loop after `from_ns`; NaN for fewer than two
    responses.

    The speed is the median of the speeds in batches of consecutive responses. Short load of other
    processes hardly changes a median.
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
    """Return the mean throughput of a window in responses per second; NaN without responses."""
    return float(1 / seen.gaps_s.mean()) if len(seen.gaps_s) else np.nan


def combined(seen: Sequence[Speed]) -> Speed:
    """Return the median speed over several windows; NaN if no window has a speed."""
    known = [each for each in seen if np.isfinite(each.rate_rps)]
    if not known:
        return NO_SPEED
    rate_rps = float(np.median([each.rate_rps for each in known]))
    squares = np.mean(np.square([each.log_error for each in known]))
    error = float(np.sqrt(squares / len(known)))
    return Speed(rate_rps, error, np.concatenate([each.gaps_s for each in known]))


def work_s(seen: Sequence[Speed]) -> Floats:
    """Return the service times of a tenant: the times between the responses of a busy server.

    The function sorts the times between responses of all probes, and divides the sorted times into
    at most PARTS parts. The result contains the mean of each part, shape (up to PARTS,).
    """
    gaps_s = np.sort(np.concatenate([np.empty(0), *(each.gaps_s for each in seen)]))
    parts = np.array_split(gaps_s, min(PARTS, len(gaps_s)) or 1)
    return np.array([part.mean() for part in parts if len(part)])


def duration_s(unloaded_ms: Floats) -> float:
    """Return the length of a saturation probe in seconds, from latencies without load."""
    alone_s = float(np.median(unloaded_ms)) / 1000
    return float(np.clip(REQUESTS * alone_s, SHORTEST_S, LONGEST_S))


def round_window_s(unloaded_ms: Sequence[Floats]) -> float:
    """Return the length in seconds of each window of a round. The slowest tenant determines the
    length."""
    slowest_s = max(float(np.median(each)) for each in unloaded_ms) / 1000
    return float(np.clip(ROUND_REQUESTS * slowest_s, ROUND_S, ROUND_LONGEST_S))


def change(first: Sequence[Speed], last: Sequence[Speed]) -> float:
    """Return the factor by which the speed changed from the first to the last probe, at least 1.

    The result is the largest factor over all tenants with load. The function ignores a factor that
    may be a sampling error, because a probe of a slow model contains few responses.
    """
    found = [1.0]
    for a, b in zip(first, last, strict=True):
        ratio, error = b.rate_rps / a.rate_rps, np.hypot(a.log_error, b.log_error)
        if abs(np.log(ratio)) > SURE * error:
            found.append(max(ratio, 1 / ratio))
    return max(found)


def wander(seen: Sequence[Sequence[Speed]]) -> float:
    """Return the standard deviation of log(speed) over time, after subtraction of the measurement
    error.

    `seen` contains the speeds of all tenants at each time. The variance is averaged over the
    tenants.
    """
    variances = []
    for of_tenant in zip(*seen, strict=True):
        logs = np.log([each.rate_rps for each in of_tenant if np.isfinite(each.rate_rps)])
        errors = [each.log_error for each in of_tenant if np.isfinite(each.log_error)]
        if len(logs) > 1:
            variances.append(float(np.var(logs, ddof=1) - np.mean(np.square(errors))))
    return float(np.sqrt(max(0.0, float(np.mean(variances))))) if variances else 0.0
