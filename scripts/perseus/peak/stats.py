"""Compute statistics of correlated latencies: percentiles, intervals, dispersion and trends.

Latencies of neighbouring requests are correlated, so plain binomial intervals are far too narrow.
Means over batches of consecutive requests are nearly independent (docs/explanation/verdict.md). The
import of scipy.stats takes longer than most jobs run, so only the functions that need scipy.stats
import it.
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
    """A value with a two-sided interval [low, high]."""

    value: float
    low: float
    high: float

    @property
    def log_deviation(self) -> float:
        """Return the standard deviation of log(value), assuming that log(value) is normally
        distributed and that [low, high] is a 95 % interval. The result is infinite if `low` is not
        positive."""
        if self.low <= 0:
            return np.inf
        return float(np.log(self.high / self.low) / (2 * NORMAL_ENDS))


UNKNOWN = Interval(np.nan, np.nan, np.nan)
"""Interval of an unknown value."""

CONFIDENCE = 0.95
"""Default confidence of intervals."""

TAIL = (1 - CONFIDENCE) / 2
"""Probability of a value beyond one end of an interval with the default confidence."""

NORMAL_ENDS = float(special.ndtri(1 - TAIL))
"""Half of the width of a 95 % interval of a normal distribution, in standard deviations."""


def percentile(values: ArrayLike, percent: float) -> float:
    """Return the smallest v in `values` for which at least `percent` % of the values are <= v.

    The values may be infinite (requests without a response). The result is NaN if `values` is
    empty.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    if ordered.size == 0:
        return float("nan")
    # Without rounding, 0.95 * 100 = 95.00000000000001 would become rank 96.
    rank = int(np.ceil(round(percent / 100 * ordered.size, 9)))
    return float(ordered[max(rank, 1) - 1])


def percentile_interval(latency_ms: Floats, percent: float) -> Interval:
    """Return a percentile of latencies, and the 95 % interval of this percentile. The latencies are
    in the order of their requests.

    The ends of the interval are latencies of the sample. The ranks of both ends are binomial
    quantiles. The number of trials is the effective number of independent requests (`dispersion`).
    If too few requests are below or above the percentile, the lower end is 0 or the upper end is
    infinite.
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
    """Return the least number of requests with which a window can pass. `allowed` is the share of
    late requests that the SLA allows.

    Assume that a share `allowed` of all requests is late. Then n requests contain at most one late
    request with a small probability. The result is the smallest n for which this probability is at
    most 1 %: 130 for p95, 662 for p99 (docs/explanation/verdict.md).
    """
    from scipy import stats

    n = int(np.ceil(1 / allowed))
    while stats.binom.cdf(1, n, allowed) > 0.01:
        n += 1
    return n


def fewest_independent(allowed: float, confidence: float) -> float:
    """Return the least number of independent requests that can show that the SLA holds, if none of
    them is late.

    The SLA holds if at most a share `allowed` of all requests is late. `confidence` is the
    one-sided confidence level.
    """
    return float(np.log(1 - confidence) / np.log(1 - allowed))


def batches(values: NDArray, count: int) -> list[NDArray]:
    """Split values into `count` consecutive batches of nearly equal size, or into single values if
    there are fewer values."""
    return np.array_split(values, min(count, len(values))) if len(values) else []


@dataclass(frozen=True)
class Exceedances:
    """The number of late requests of one tenant in one window, and measures of their clustering.

    A cluster is a series of late requests between which the latency never recovered
    (`late_and_recovered`). `episode_squares` is the sum of the squared sizes of all clusters.
    `correlation` is the integrated autocorrelation time of the latencies, in requests. For
    `correlation`, the latencies are clipped to the range from QUIET times to 10 times the latency
    limit of the SLA.
    """

    requests: int
    late: int
    episode_squares: float
    correlation: float


def late_and_recovered(
    latency_ms: Floats, limit_ms: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two arrays: whether each latency exceeds the limit, and whether each latency has
    recovered.

    A latency has recovered if it is at most half of the limit. If the median latency exceeds half
    of the limit, a latency has recovered if it exceeds neither the median nor the limit.
    """
    recovered_ms = min(limit_ms, max(limit_ms / 2, percentile(latency_ms, 50)))
    return latency_ms > limit_ms, latency_ms <= recovered_ms


def exceedances(latency_ms: Floats, limit_ms: float) -> Exceedances:
    """Count the latencies above `limit_ms`, and compute measures of the clusters that these
    latencies form. The latencies are in the order of the requests."""
    if len(latency_ms) == 0:
        return Exceedances(0, 0, 0.0, 1.0)
    late, recovered = late_and_recovered(latency_ms, limit_ms)
    sizes = np.unique(np.cumsum(recovered)[late], return_counts=True)[1].astype(float)
    correlation = correlation_time(np.clip(latency_ms, QUIET * limit_ms, 10 * limit_ms))
    return Exceedances(len(late), int(late.sum()), float(np.sum(sizes**2)), correlation)


def correlation_time(values: Floats) -> float:
    """Return the integrated autocorrelation time of `values`: the number of values that contain as
    much information as one independent value, at least 1.

    Let t(M) be 1 plus twice the sum of the autocorrelations at the lags 1 to M. The result is t(M)
    for the smallest M that is at least 5 t(M) (Sokal, Monte Carlo Methods in Statistical Mechanics,
    1997, section 3).
    """
    if np.ptp(values) == 0:  # by rounding, the mean of equal values may differ from the values
        return 1.0
    n, centred = len(values), values - np.mean(values)
    spectrum = np.fft.rfft(centred, 2 * n)
    correlation = np.fft.irfft(spectrum * np.conj(spectrum))[:n]
    times = 2 * np.cumsum(correlation / correlation[0]) - 1
    long_enough = np.nonzero(np.arange(n) >= 5 * times)[0]
    return max(1.0, float(times[long_enough[0] if len(long_enough) else n - 1]))


def dispersion(windows: Sequence[Exceedances], weights: ArrayLike) -> float:
    """Return the dispersion of the number of late requests, estimated from several windows; at
    least 1.

    The dispersion is the variance of the number of late requests divided by the variance that
    independent requests would have. Late requests come in independent clusters, so their number is
    nearly a compound Poisson variable. The dispersion of a compound Poisson variable is the
    size-weighted mean size of a cluster (declustering in extreme-value theory: Ferro and Segers,
    JRSS B 65, 2003). If the windows contain few or no late requests, the prior (PRIOR_EPISODES,
    PRIOR_CORRELATIONS) determines most of the result.
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


def similarity(scale: float, scales: ArrayLike, within: float) -> Floats:
    """Return the weights of k windows in an estimate at the load factor `scale`.

    `scales` contains the load factors of the windows. The weights are in (0, 1], shape (k,). The
    closer the load factor of a window is to `scale`, the larger is its weight. At two loads, late
    requests form clusters of similar sizes if the relative difference of the loads is at most
    `within`.
    """
    return np.exp(-0.5 * (np.log(np.asarray(scales) / scale) / within) ** 2)


PRIOR_EPISODES = 2.0
PRIOR_CORRELATIONS = 1.5
"""Prior of the result of `dispersion`. PRIOR_EPISODES is the weight of the prior, as a number of
clusters. The value of the prior is PRIOR_CORRELATIONS times the correlation time of the latencies.
PRIOR_CORRELATIONS exceeds 1, since short windows underestimate the correlation time."""


QUIET = 0.25
"""A latency below this share of the latency limit of the SLA contains no information about clusters
of late requests."""

BATCHES = 10
"""Number of batches of a window for the batch-means interval of its exceedance."""


def exceedance(
    latency_ms: Floats, limit_ms: float, confidence: float, dispersion: float
) -> Interval:
    """Return the share of latencies above `limit_ms`, with a two-sided interval.

    The interval is the union of two intervals: the batch-means t interval (Law, Simulation Modeling
    and Analysis, 5th ed., section 9.5.3), and the Clopper-Pearson interval for n / `dispersion`
    independent requests. The Clopper-Pearson interval is valid even if batches are shorter than a
    cluster, or if all batches have the same share, for example 0.
    """
    late = latency_ms > limit_ms
    n, hits = len(late), int(np.sum(late))
    if n == 0:
        return Interval(float("nan"), 0.0, 1.0)
    share, tail = hits / n, (1 - confidence) / 2
    _, low, high = proportion(hits / dispersion, n / dispersion, confidence)
    means = np.array([np.mean(b) for b in batches(late, BATCHES)])
    if len(means) > 1:
        half = special.stdtrit(len(means) - 1, 1 - tail) * means.std(ddof=1) / np.sqrt(len(means))
        low, high = min(low, share - half), max(high, share + half)
    return Interval(share, max(0.0, low), min(1.0, high))


def proportion(hits: float, n: float, confidence: float) -> tuple[float, float, float]:
    """Return hits / n, and the ends of its two-sided Clopper-Pearson interval."""
    tail = (1 - confidence) / 2
    low = float(special.betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
    high = float(special.betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return hits / n, low, high


def mean_interval(values: ArrayLike) -> Interval:
    """Return the mean of independent values with its 95 % Student's t interval.

    The ends of the interval are NaN for fewer than two values.
    """
    found = np.asarray(values, float)
    if len(found) < 2:
        return Interval(float(np.mean(found)) if len(found) else np.nan, np.nan, np.nan)
    half = special.stdtrit(len(found) - 1, (1 + CONFIDENCE) / 2) * found.std(ddof=1)
    half /= np.sqrt(len(found))
    return Interval(float(found.mean()), float(found.mean() - half), float(found.mean() + half))


def rising(times: ArrayLike, values: ArrayLike, confidence: float) -> tuple[float, bool]:
    """Return the Theil-Sen slope of `values` over `times`, and whether the two-sided confidence
    interval of the slope lies above 0."""
    from scipy import stats

    fit = stats.theilslopes(np.asarray(values), np.asarray(times), alpha=confidence)
    return float(fit.slope), bool(fit.low_slope > 0)
