"""Decide from the latencies of a window whether a server is in its steady state
(docs/explanation/search.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perseus.peak import stats
from perseus.peak.stats import Floats
from perseus.peak.system import Observation

TOLERANCE = 0.1
"""A latency is steady if its relative change is at most this value, or not significant. With a
smaller value, hardly any latency would be steady, because the varying speed of a host changes the
latency by about 10 %."""

ALIKE = 0.25
"""The warm-up may end if the relative difference between the halves of a window, including sampling
errors, is at most this value."""
BATCHES = 10
GROUP = 5  # MSER-5 uses means of five values
SURE = 3.0  # a difference is significant if it exceeds this number of standard errors
TREND_CONFIDENCE = 0.998
FEWEST = 60  # least number of responses of a tenant for a decision on its steady state


@dataclass(frozen=True)
class LowerQuartile:
    """The lower quartile of latencies, with its standard error (from batches of requests)."""

    value_ms: float
    error_ms: float

    def differs(self, other: LowerQuartile, tolerance: float) -> bool:
        """Return whether the quartile `other` differs from this quartile significantly (SURE), and
        by more than `tolerance` times this quartile."""
        change_ms = abs(other.value_ms - self.value_ms)
        error_ms = np.hypot(self.error_ms, other.error_ms)
        return bool(change_ms > tolerance * self.value_ms and change_ms > SURE * error_ms)

    def is_like(self, other: LowerQuartile, tolerance: float) -> bool:
        """Return whether the quartile `other` is certainly close to this quartile: the difference,
        plus two standard errors, is at most `tolerance` times this quartile."""
        change_ms = abs(other.value_ms - self.value_ms)
        error_ms = np.hypot(self.error_ms, other.error_ms)
        return bool(change_ms + 2 * error_ms <= tolerance * self.value_ms)


@dataclass(frozen=True)
class Steadiness:
    """The lower quartiles of the latency in both halves of a window, without the transient at its
    start.

    `trend` says whether the latency rises or falls significantly over the window. The test for a
    trend finds a slow change more reliably than a comparison of the halves, because a slow change
    also increases the scatter within each half.
    """

    first: LowerQuartile
    last: LowerQuartile
    trend: bool

    @property
    def steady(self) -> bool:
        """Return whether the latency has no trend, and both halves of the window hardly differ
        (TOLERANCE)."""
        return not (self.trend or self.first.differs(self.last, TOLERANCE))

    def still_changes_since(self, before: Steadiness, factor: float) -> bool:
        """Return whether the latency still changes, and has changed by a factor of more than
        `factor` since the start of the previous window.

        `before` is the steadiness in the previous window. The latency still changes if it changed
        significantly within this window, or from the end of the previous window to the start of
        this window. If one of the two windows has too few responses, the result is false.
        """
        if IDLE in (self, before):
            return False
        changes = not self.steady or before.last.differs(self.first, TOLERANCE)
        ratio = self.last.value_ms / before.first.value_ms
        return changes and max(ratio, 1 / ratio) > factor

    @property
    def surely_steady(self) -> bool:
        """Return whether the warm-up may end: the latency is steady, and the window has enough
        requests to show that both halves are similar (ALIKE)."""
        return self.steady and self.first.is_like(self.last, ALIKE)


NONE = LowerQuartile(0.0, 0.0)
IDLE = Steadiness(NONE, NONE, trend=False)
"""Steadiness of a tenant without load or with too few responses; its latency counts as steady."""


def of_each_tenant(seen: Observation) -> tuple[Steadiness, ...]:
    """Return the steadiness of each tenant's latency in a window. The latency of a tenant with
    fewer than FEWEST responses counts as steady."""
    found = []
    for requests in seen.requests:
        latency_ms = requests.latency_ms(seen.now_ns)[requests.answered]
        found.append(steadiness(latency_ms) if len(latency_ms) >= FEWEST else IDLE)
    return tuple(found)


def steadiness(latency_ms: Floats) -> Steadiness:
    """Return the steadiness of one tenant in a window. `latency_ms` contains the latencies in the
    order of the requests.

    The function leaves out the transient at the start, but at most the first half of the latencies,
    because a later change is not a transient.
    """
    rest = latency_ms[min(transient(latency_ms), len(latency_ms) // 2) :]
    first, last = np.array_split(rest, 2)
    return Steadiness(_quartile(first), _quartile(last), _trend(rest))


def _trend(latency_ms: Floats) -> bool:
    """Return whether the lower quartile of the latency has a trend over successive batches.

    The quartile has a trend if it rises or falls significantly, and if the total change exceeds
    TOLERANCE times the median of the quartiles.
    """
    quartiles = [stats.percentile(batch, 25) for batch in stats.batches(latency_ms, 2 * BATCHES)]
    times = np.linspace(0, 1, len(quartiles))
    for direction in (1, -1):
        slope, sure = stats.rising(times, direction * np.array(quartiles), TREND_CONFIDENCE)
        if sure and slope > TOLERANCE * np.median(quartiles):
            return True
    return False


def _quartile(latency_ms: Floats) -> LowerQuartile:
    quartiles = [stats.percentile(batch, 25) for batch in stats.batches(latency_ms, BATCHES)]
    error_ms = float(np.std(quartiles, ddof=1) / np.sqrt(len(quartiles)))
    return LowerQuartile(stats.percentile(latency_ms, 25), error_ms)


def transient(values: Floats) -> int:
    """Return the number of values in the transient at the start of `values`, by the method MSER-5
    (White, Simulation 69(6), 1997).

    MSER-5 averages groups of five consecutive values, and removes group means from the start. The
    transient is the part whose removal minimizes the standard error of the mean of the remaining
    group means. The function removes at most three quarters of the group means, because the
    standard error of few group means is unreliable.
    """
    groups = np.array([np.mean(b) for b in stats.batches(values, max(1, len(values) // GROUP))])
    n = len(groups)
    if n < 4:
        return 0
    rest = np.arange(n, 0, -1)
    sums, squares = np.cumsum(groups[::-1])[::-1], np.cumsum(groups[::-1] ** 2)[::-1]
    standard_error = (squares - sums**2 / rest) / rest**2
    return GROUP * int(np.argmin(standard_error[: max(1, 3 * n // 4)]))
