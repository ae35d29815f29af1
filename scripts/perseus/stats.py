"""Statistics of autocorrelated latencies: order statistics, batch means, trends, bootstraps.

Latencies of neighbouring requests are correlated, so plain binomial intervals are far too narrow
(docs/method.md, M5 and M6); what is independent enough to count is a batch, not a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A two-sided interval [low, high] around `value`."""

    value: float
    low: float
    high: float


def percentile(values: ArrayLike, percent: float) -> float:
    """The smallest observed value with at least `percent` % of the values at or below it.

    An order statistic, never an interpolation; infinite values (requests without an answer) count.
    NaN when there are no values.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    if ordered.size == 0:
        return float("nan")
    # The rounding keeps 0.95 * 100 = 95.00000000000001 from becoming 96.
    rank = int(np.ceil(round(percent / 100 * ordered.size, 9)))
    return float(ordered[max(rank, 1) - 1])


def batches(values: NDArray, count: int) -> list[NDArray]:
    """Split into `count` consecutive batches of nearly equal size (fewer for few values)."""
    return np.array_split(values, min(count, len(values))) if len(values) else []


def exceedance(
    exceeds: NDArray[np.bool_], confidence: float, dispersion: float = 1.0, batch_count: int = 10
) -> Interval:
    """The share of requests over their SLA, with a two-sided interval at `confidence`.

    The interval is the wider, on each side, of the batch-means t interval (Law, Simulation Modeling
    and Analysis, 5th ed., section 9.5.3), which sees autocorrelation, and the Clopper-Pearson
    interval of n / `dispersion` independent requests, which is still honest when every batch has
    the same share (for example none).
    """
    n, hits = len(exceeds), int(np.sum(exceeds))
    if n == 0:
        return Interval(float("nan"), 0.0, 1.0)
    share, tail = hits / n, (1 - confidence) / 2
    over, under = hits / dispersion, (n - hits) / dispersion
    low = float(stats.beta.ppf(tail, over, under + 1)) if hits else 0.0
    high = float(stats.beta.ppf(1 - tail, over + 1, under)) if hits < n else 1.0
    means = np.array([np.mean(b) for b in batches(exceeds, batch_count)])
    if len(means) > 1:
        half = stats.t.ppf(1 - tail, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
        low, high = min(low, share - half), max(high, share + half)
    return Interval(share, max(0.0, low), min(1.0, high))


def effective_size(values: ArrayLike, batch_count: int = 10) -> float:
    """How many independent values would fix the mean as well as these do (1 .. n).

    n times the variance of single values over n_batch times the variance of batch means.
    """
    data = np.asarray(values, dtype=float)
    parts = batches(data, batch_count)
    if len(parts) < 2 or data.std() == 0:
        return float(len(data))
    variance_of_mean = np.var([p.mean() for p in parts], ddof=1) / len(parts)
    if variance_of_mean == 0:
        return float(len(data))
    return float(np.clip(data.var(ddof=1) / variance_of_mean, 1, len(data)))


def rising(times: ArrayLike, values: ArrayLike, confidence: float) -> tuple[float, bool]:
    """Theil-Sen slope of `values` over `times`, and whether its two-sided interval is above 0."""
    fit = stats.theilslopes(np.asarray(values), np.asarray(times), alpha=confidence)
    return float(fit.slope), bool(fit.low_slope > 0)


def batch_counts(exceeds: NDArray[np.bool_], batch_count: int) -> NDArray[np.int64]:
    """(requests over their SLA, requests) of consecutive batches, shape (batches, 2)."""
    return np.array([(np.sum(b), len(b)) for b in batches(exceeds, batch_count)]).reshape(-1, 2)


def limit(
    loads: Floats,
    counts: Sequence[NDArray[np.int64]],
    allowed: float,
    rng: np.random.Generator,
    draws: int,
) -> Floats:
    """The load at which the share of requests over their SLA reaches `allowed`; shape (1 + draws,).

    A logistic regression of that share on the logarithm of the load, over windows at `loads` (k,)
    with `counts` of their batches (see `batch_counts`). Near the limit the exceedance of a queue
    grows about exponentially with its load, so that the logit is close to linear.

    The first value is the estimate, the others are a parametric bootstrap: fits drawn from the
    normal approximation of the likelihood, spread as Student's t for the few batches it rests on.
    """
    totals = np.array([c[:, 1].sum() for c in counts], float)
    hits = np.array([c[:, 0].sum() for c in counts], float)
    weight = 1 / dispersion(counts)
    centre = float(np.exp(np.mean(np.log(loads))))
    fit, covariance = _logistic(np.log(loads / centre), hits * weight, totals * weight)
    freedom = max(1, sum(len(c) for c in counts) - len(counts))
    spread = rng.multivariate_normal(np.zeros(2), covariance, draws)
    spread *= np.sqrt(freedom / rng.chisquare(freedom, (draws, 1)))
    level, slope = np.vstack([fit, fit + spread]).T
    limits = centre * np.exp((np.log(allowed / (1 - allowed)) - level) / np.maximum(slope, 2))
    # A logistic curve says nothing of loads far from all that were offered.
    return np.clip(limits, loads.min() / REACH, loads.max() * REACH)


def dispersion(counts: Sequence[NDArray[np.int64]]) -> float:
    """Variance of batch counts over that of independent requests, pooled over windows.

    Neighbouring requests share their fate: where this is 4, four requests tell as much as one that
    is independent. At least 1. Bursts are rare, so that few batches seldom show them: the result is
    drawn towards DISPERSION as if that had been seen in PRIOR_BATCHES more.
    """
    squares, freedom = PRIOR_BATCHES * DISPERSION, PRIOR_BATCHES
    for window in counts:
        hits, totals = window[:, 0], window[:, 1]
        share = hits.sum() / max(totals.sum(), 1)
        if 0 < share < 1:
            squares += float(np.sum((hits - totals * share) ** 2 / (totals * share * (1 - share))))
            freedom += len(window) - 1
    return max(1.0, squares / freedom)


REACH = 1.5
"""How far beyond the loads that were offered `limit` may go."""

PRIOR_BATCHES = 3.0
DISPERSION = 2.0
"""What `dispersion` assumes before it has seen anything; simulated queues near their limit have 2
to 10."""

SLOPE = (15.0, 6.0)
"""Prior mean and standard deviation of d logit(exceedance) / d log(load).

In heavy traffic the exceedance of a queue at utilisation u is about exp(-c (1 - u) / u), so that
its logarithmic slope at the limit is ln(1 / allowed) / (1 - u): 10 at u = 0.7, 20 at u = 0.85. The
prior keeps a fit finite when no window, or every window, has exceedances.
"""

LEVEL = (-3.0, 3.0)
"""Prior mean and standard deviation of logit(exceedance) amid the windows: nearly flat."""


def _logistic(x: Floats, hits: Floats, totals: Floats) -> tuple[Floats, Floats]:
    """(level, slope) of logit(hits / totals) = level + slope x, and their covariance matrix.

    The maximum of likelihood times priors by Newton's method with bounded steps.
    """
    prior = np.array([LEVEL, SLOPE])
    design = np.stack([np.ones_like(x), x], axis=1)
    fit = prior[:, 0].copy()
    precision = np.diag(prior[:, 1] ** -2)
    for _ in range(40):
        share = 1 / (1 + np.exp(-np.clip(design @ fit, -30, 30)))
        information = design.T @ (design * (totals * share * (1 - share))[:, None]) + precision
        gradient = design.T @ (hits - totals * share) - precision @ (fit - prior[:, 0])
        step = np.linalg.solve(information, gradient)
        fit = fit + step * min(1.0, 3 / max(float(np.abs(step).max()), 1e-12))
    return fit, np.linalg.inv(information)
