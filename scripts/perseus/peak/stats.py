"""Statistics of autocorrelated latencies: order statistics, batch means, trends, bootstraps.

Latencies of neighbouring requests are correlated, so plain binomial intervals are far too narrow.
Batches are nearly independent, single requests are not (docs/explanation/verdict.md). scipy.stats
is imported only where necessary: its import takes longer than most jobs run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A two-sided interval [low, high] around `value`."""

    value: float
    low: float
    high: float

    @property
    def log_deviation(self) -> float:
        """The standard deviation of log(value) in the normal approximation; infinite with an open
        end."""
        if self.low <= 0:
            return np.inf
        return float(np.log(self.high / self.low) / (2 * NORMAL_ENDS))


UNKNOWN = Interval(np.nan, np.nan, np.nan)
"""The interval of an unknown value."""

CONFIDENCE = 0.95
"""Confidence of intervals, unless stated otherwise."""

TAIL = (1 - CONFIDENCE) / 2
"""Probability beyond each end."""

NORMAL_ENDS = float(special.ndtri(1 - TAIL))
"""Distance of the ends of a normal interval from its middle, in standard deviations."""


def percentile(values: ArrayLike, percent: float) -> float:
    """Return the smallest observed value with at least `percent` % of the values at or below it.

    It is an order statistic, never an interpolation. Infinite values (requests without a response)
    count. NaN without values.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    if ordered.size == 0:
        return float("nan")
    # The rounding keeps 0.95 * 100 = 95.00000000000001 from becoming 96.
    rank = int(np.ceil(round(percent / 100 * ordered.size, 9)))
    return float(ordered[max(rank, 1) - 1])


def percentile_interval(latency_ms: Floats, percent: float) -> Interval:
    """Return a percentile of latencies in the order of their requests, with its 95 % interval.

    The interval is that of order statistics (binomial ranks), for the number of independent
    requests. This number follows from the clusters of the requests above the percentile
    (`dispersion`). The upper end is infinite if there are too few requests to bound the percentile.
    """
    from scipy import stats

    value = percentile(latency_ms, percent)
    if not np.isfinite(value):  # no requests, or too many without a response
        return Interval(value, float("nan"), value)
    above = exceedances(latency_ms, value)
    worth = max(1, int(len(latency_ms) / dispersion([above], [1.0])))
    first, last = stats.binom.ppf([TAIL, 1 - TAIL], worth, percent / 100)
    low = percentile(latency_ms, 100 * first / worth) if first > 0 else 0.0
    high = percentile(latency_ms, 100 * (last + 1) / worth) if last < worth else float("inf")
    return Interval(value, low, high)


@cache
def fewest_requests(allowed: float) -> int:
    """Return the least number of requests for a verdict: one late request must be allowed.

    It is the smallest n for which, at an exceedance of `allowed`, at most one request is late with
    a probability of 1 %: 130 for p95, 662 for p99 (docs/explanation/verdict.md).
    """
    from scipy import stats

    n = int(np.ceil(1 / allowed))
    while stats.binom.cdf(1, n, allowed) > 0.01:
        n += 1
    return n


def batches(values: NDArray, count: int) -> list[NDArray]:
    """Split into `count` consecutive batches of nearly equal size (fewer for few values)."""
    return np.array_split(values, min(count, len(values))) if len(values) else []


@dataclass(frozen=True)
class Exceedances:
    """Late requests of one tenant in one window, and how they cluster.

    `episode_squares` is the sum of the squared sizes of clusters: series of late requests between
    which the latency never recovered. `correlation` is the integrated autocorrelation time, in
    requests, of the part of the latencies above QUIET x the SLA.
    """

    requests: int
    late: int
    episode_squares: float
    correlation: float


def late_and_recovered(
    latency_ms: Floats, limit_ms: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which latencies exceed the limit, and which are recovered: below half of the limit.

    If the median is higher than that, below the median: such a server needs most of the limit for
    the service alone.
    """
    recovered_ms = min(limit_ms, max(limit_ms / 2, percentile(latency_ms, 50)))
    return latency_ms > limit_ms, latency_ms <= recovered_ms


def exceedances(latency_ms: Floats, limit_ms: float) -> Exceedances:
    """Count the latencies above `limit_ms`, in the order of their requests.

    A cluster lasts until a latency has recovered (see `late_and_recovered`).
    """
    if len(latency_ms) == 0:
        return Exceedances(0, 0, 0.0, 1.0)
    late, recovered = late_and_recovered(latency_ms, limit_ms)
    sizes = np.unique(np.cumsum(recovered)[late], return_counts=True)[1].astype(float)
    correlation = correlation_time(np.clip(latency_ms, QUIET * limit_ms, 10 * limit_ms))
    return Exceedances(len(late), int(late.sum()), float(np.sum(sizes**2)), correlation)


def correlation_time(values: Floats) -> float:
    """Return the integrated autocorrelation time: the number of neighbours per independent value,
    at least 1.

    It is the sum of autocorrelations over the first M lags, with M the smallest that is at least
    five times the result (Sokal, Monte Carlo Methods in Statistical Mechanics, 1997, section 3).
    """
    if np.ptp(values) == 0:  # due to rounding, the mean of equal values may differ from them
        return 1.0
    n, centred = len(values), values - np.mean(values)
    spectrum = np.fft.rfft(centred, 2 * n)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum))[:n]
    times = 2 * np.cumsum(correlation / correlation[0]) - 1
    long_enough = np.nonzero(np.arange(n) >= 5 * times)[0]
    return max(1.0, float(times[long_enough[0] if len(long_enough) else n - 1]))


def dispersion(windows: Sequence[Exceedances], weights: ArrayLike) -> float:
    """Return the variance of the count of late requests over that of independent requests, pooled
    over windows; at least 1.

    Late requests come in clusters, and the clusters are independent: the count is about a compound
    Poisson variable, and its dispersion is the size-weighted mean size of a cluster (the
    declustering of extreme-value theory: Ferro and Segers, JRSS B 65, 2003). If windows have few or
    no late requests, the correlation of latencies replaces it; in simulated queues near their limit
    the two agree within a factor of 1.5. The correlation counts like PRIOR_EPISODES clusters.
    """
    w = np.asarray(weights, float)
    squares = float(np.dot(w, [seen.episode_squares for seen in windows]))
    late = float(np.dot(w, [seen.late for seen in windows]))
    expected = PRIOR_CORRELATIONS * float(
        np.dot(w, [seen.correlation for seen in windows]) / w.sum()
    )
    mean_size = (1 + expected) / 2
    return max(
        1.0,
        (squares + PRIOR_EPISODES * mean_size * expected) / (late + PRIOR_EPISODES * mean_size),
    )


def similarity(scale: float, scales: ArrayLike) -> Floats:
    """Return weights in (0, 1] of windows at `scales`, shape (k,), as evidence on clusters at
    `scale`."""
    return np.exp(-0.5 * (np.log(np.asarray(scales) / scale) / SIMILAR) ** 2)


SIMILAR = 0.08
"""Relative difference of loads at which clusters are similar."""

PRIOR_EPISODES = 2.0
PRIOR_CORRELATIONS = 1.5
"""Prior of `dispersion`, in correlation times, which short windows underestimate."""


QUIET = 0.25
"""Share of a limit below which latencies are no evidence of its clusters."""

BATCHES = 10
"""Number of batches of a window, for the batch-means interval of its exceedance."""


def exceedance(
    latency_ms: Floats, limit_ms: float, confidence: float, dispersion: float
) -> Interval:
    """Return the exceedance, with a two-sided interval at `confidence`.

    On each side, the interval is the wider of two: the batch-means t interval (Law, Simulation
    Modeling and Analysis, 5th ed., section 9.5.3), and the Clopper-Pearson interval of n /
    `dispersion` independent requests. The latter is still valid if batches are shorter than a
    cluster, or if every batch has the same share (for example none).
    """
    late = latency_ms > limit_ms
    n, hits = len(late), int(np.sum(late))
    if n == 0:
        return Interval(float("nan"), 0.0, 1.0)
    share, tail = hits / n, (1 - confidence) / 2
    over, under = hits / dispersion, (n - hits) / dispersion
    low = float(special.betaincinv(over, under + 1, tail)) if hits else 0.0
    high = float(special.betaincinv(over + 1, under, 1 - tail)) if hits < n else 1.0
    means = np.array([np.mean(b) for b in batches(late, BATCHES)])
    if len(means) > 1:
        half = special.stdtrit(len(means) - 1, 1 - tail) * means.std(ddof=1) / np.sqrt(len(means))
        low, high = min(low, share - half), max(high, share + half)
    return Interval(share, max(0.0, low), min(1.0, high))


def mean_interval(values: ArrayLike) -> Interval:
    """Return the mean of independent values with its 95 % interval (Student's); the ends are NaN
    for fewer than two values."""
    found = np.asarray(values, float)
    if len(found) < 2:
        return Interval(float(np.mean(found)) if len(found) else np.nan, np.nan, np.nan)
    half = special.stdtrit(len(found) - 1, (1 + CONFIDENCE) / 2) * found.std(ddof=1)
    half /= np.sqrt(len(found))
    return Interval(float(found.mean()), float(found.mean() - half), float(found.mean() + half))


def rising(times: ArrayLike, values: ArrayLike, confidence: float) -> tuple[float, bool]:
    """Return the Theil-Sen slope of `values` over `times`, and whether its two-sided interval is
    above 0."""
    from scipy import stats

    fit = stats.theilslopes(np.asarray(values), np.asarray(times), alpha=confidence)
    return float(fit.slope), bool(fit.low_slope > 0)
