"""Saturation probes: the speed of a busy server in a closed loop (docs/explanation/search.md).

A server is busy where requests wait, and only then does it work as it does near its limit: without
load its caches cool down, and its latencies tell of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from perseus.peak import stats
from perseus.peak.stats import Floats
from perseus.traffic.requests import Requests

IN_FLIGHT = 4
"""Requests of a tenant that are always with the server."""

SHORTEST_S, LONGEST_S, REQUESTS = 1.5, 20.0, 30
"""Length of a probe: seconds, or consecutive requests."""

ROUND_S, ROUND_LONGEST_S, ROUND_REQUESTS = 0.7, 5.0, 20
"""Length of a window of a round: seconds, or consecutive requests."""

SURE = 4.0
"""Standard errors by which two speeds differ that are not the same: they are of few batches, and
of a fast model with exponential work still less than a change that counts."""

MEDIAN = float(np.sqrt(np.pi / 2))
"""Standard error of a median of normal values over that of their mean."""


PARTS = 100
"""Number of parts of the times between responses, in order; the mean of each part is kept."""


@dataclass(frozen=True)
class Speed:
    """Responses per second of a busy server, and the standard error of their logarithm.

    `gaps_s`, shape (n,), are the times between the answers.
    """

    rate_rps: float
    log_error: float
    gaps_s: Floats = field(default_factory=lambda: np.empty(0), compare=False)


NO_SPEED = Speed(np.nan, np.nan)
"""The speed of a tenant without load."""


def speed(requests: Requests, from_ns: int) -> Speed:
    """The speed in a closed loop after `from_ns`.

    The median of batches of answers, so that a burst of something else on the host hardly counts.
    Not a number where there are fewer than two answers.
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
    """Mean throughput of a window; NaN without responses."""
    return float(1 / seen.gaps_s.mean()) if len(seen.gaps_s) else np.nan


def combined(seen: Sequence[Speed]) -> Speed:
    """The median speed of several windows; NaN if none has one."""
    known = [each for each in seen if np.isfinite(each.rate_rps)]
    if not known:
        return NO_SPEED
    rate_rps = float(np.median([each.rate_rps for each in known]))
    squares = np.mean(np.square([each.log_error for each in known]))
    error = float(np.sqrt(squares / len(known)))
    return Speed(rate_rps, error, np.concatenate([each.gaps_s for each in known]))


def work_s(seen: Sequence[Speed]) -> Floats:
    """Service times: the times between the responses of a busy server, from all probes.

    In order, and of each hundredth of them the mean; shape (up to 100,).
    """
    gaps_s = np.sort(np.concatenate([np.empty(0), *(each.gaps_s for each in seen)]))
    parts = np.array_split(gaps_s, min(PARTS, len(gaps_s)) or 1)
    return np.array([part.mean() for part in parts if len(part)])


def duration_s(unloaded_ms: Floats) -> float:
    """Length of a probe, from latencies without load."""
    alone_s = float(np.median(unloaded_ms)) / 1000
    return float(np.clip(REQUESTS * alone_s, SHORTEST_S, LONGEST_S))


def round_window_s(unloaded_ms: Sequence[Floats]) -> float:
    """Length of each window of a round: equal for all tenants, set by the slowest one."""
    slowest_s = max(float(np.median(each)) for each in unloaded_ms) / 1000
    return float(np.clip(ROUND_REQUESTS * slowest_s, ROUND_S, ROUND_LONGEST_S))


def change(first: Sequence[Speed], last: Sequence[Speed]) -> float:
    """The largest significant factor, at least 1, between the speeds of a tenant; idle tenants are
    NaN.

    A slow model gives few responses, so the sampling error alone may cause a difference.
    """
    found = [1.0]
    for a, b in zip(first, last, strict=True):
        ratio, error = b.rate_rps / a.rate_rps, np.hypot(a.log_error, b.log_error)
        if abs(np.log(ratio)) > SURE * error:
            found.append(max(ratio, 1 / ratio))
    return max(found)


def wander(seen: Sequence[Sequence[Speed]]) -> float:
    """Standard deviation of the logarithm of a speed over time, without measurement error.

    `seen` has one entry per tenant for each time. The tenants' mean variance.
    """
    variances = []
    for of_tenant in zip(*seen, strict=True):
        logs = np.log([each.rate_rps for each in of_tenant if np.isfinite(each.rate_rps)])
        errors = [each.log_error for each in of_tenant if np.isfinite(each.log_error)]
        if len(logs) > 1:
            variances.append(float(np.var(logs, ddof=1) - np.mean(np.square(errors))))
    return float(np.sqrt(max(0.0, float(np.mean(variances))))) if variances else 0.0
