"""Estimate the drift of a quantity over hours (docs/explanation/soak.md).

The 95 % interval of the drift accounts for the autocorrelation of successive values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy import special

from perseus.peak.stats import TAIL, UNKNOWN, Floats, Interval, batches, mean_interval

BLOCKS = 30
"""Largest number of blocks of consecutive values. The fit of the drift uses the median of each
block."""

FEWEST = 8
"""Least number of blocks for an estimate of the drift, and least number of independent values for
Sen's interval (`sen`). With fewer independent values, Perseus uses the interval of `random_walk`
instead."""

STEADY = 0.1
"""A quantity is steady only if the whole 95 % interval of its change per hour lies between -STEADY
and STEADY, as a share of `Drift.scale`."""

MIN_CHANGE = 0.01
"""Least change during the whole measurement that Perseus reports as a drift, as a share of
`Drift.scale`. The memory of a healthy server changed by 0.4 % in its first minute."""


class Trend(StrEnum):
    STEADY = "steady"
    GROWS = "grows"
    FALLS = "falls"
    INFINITE = "infinite at times"
    UNKNOWN = "too short to tell"


@dataclass(frozen=True)
class Drift:
    """A straight line, fitted to the values of a quantity over the time in hours.

    The line is fitted to the finite values after the warm-up. `first` is the index of the first of
    these values, and `hours` is the time from this value to the last value. `level` is the value of
    the line at the index `first`, and `per_hour` is its slope; both are NaN if there are too few
    values. Perseus judges changes of the quantity relative to `scale`. `was_infinite` is true if at
    least one value of the quantity is not finite.
    """

    first: int
    hours: float
    level: float
    per_hour: Interval
    scale: float
    was_infinite: bool = False

    @property
    def trend(self) -> Trend:
        """The verdict on the drift: whether the quantity grows, falls or is steady.

        A quantity grows or falls under two conditions: the 95 % interval of its slope excludes 0,
        and the quantity changes by at least MIN_CHANGE x `scale` in `hours`.
        """
        low, high = self.per_hour.low, self.per_hour.high
        changes = abs(self.per_hour.value) * self.hours >= MIN_CHANGE * self.scale
        if changes and low > 0:
            return Trend.GROWS
        if self.was_infinite:
            return Trend.INFINITE
        if changes and high < 0:
            return Trend.FALLS
        within = max(-low, high) <= STEADY * self.scale
        return Trend.STEADY if within else Trend.UNKNOWN


def drift(hours: Floats, values: Floats, scale: float | None = None) -> Drift:
    """Return the drift of `values` over the times `hours`. Both arrays have shape (n,), and the
    times ascend.

    If `scale` is given, `Drift.scale` has this value. Otherwise, `Drift.scale` is the absolute
    value of `Drift.level`.
    """
    finite = np.flatnonzero(np.isfinite(values))
    if len(finite) < len(values):
        found = drift(hours[finite], values[finite], scale)
        first = int(finite[found.first]) if len(finite) else 0
        return replace(found, first=first, was_infinite=True)
    first = warm_up(hours, values)
    times, medians = blocks(hours[first:]), blocks(values[first:])
    length = float(hours[-1] - hours[first]) if len(hours) else 0.0
    if len(medians) < FEWEST:
        return Drift(first, length, np.nan, UNKNOWN, np.nan)
    slope = sen(times, medians) or random_walk(times, medians)
    level = float(np.median(medians - slope.value * (times - hours[first])))
    return Drift(first, length, level, slope, abs(level) if scale is None else scale)


def warm_up(hours: Floats, values: Floats) -> int:
    """Return how many values at the start belong to the warm-up: at most half of all values.

    For each number, the function fits a line to the remaining values. The result is the number with
    the least standard error of the slope. The usual rule MSER (White, Simulation 69(6), 1997)
    minimises the standard error of the mean instead, and would mistake a drift for a warm-up.
    """
    n = len(values)
    if n < 2 * FEWEST:
        return 0
    x, y = hours - hours.mean(), values - values.mean()
    left = np.arange(n, 0, -1)

    def squares(a: Floats, b: Floats) -> Floats:
        """For each k = 0, 1, 2, ..., return the sum of (a - mean a) x (b - mean b) over all values
        of `a` and `b` except the first k."""
        sums = [np.cumsum(each[::-1])[::-1] for each in (a * b, a, b)]
        return np.asarray(sums[0] - sums[1] * sums[2] / left)[: n // 2 + 1]

    of_time, rounding = squares(x, x), 1e-9 * float(y @ y)
    residual = np.maximum(squares(y, y) - squares(x, y) ** 2 / of_time, rounding)
    return int(np.argmin(residual / (left[: n // 2 + 1] - 2) / of_time))


def blocks(values: Floats) -> Floats:
    """Divide values into at most BLOCKS blocks of consecutive values, and return the median of each
    block. An outlier hardly changes a median."""
    return np.array([np.median(each) for each in batches(values, BLOCKS)])


def sen(times: Floats, values: Floats) -> Interval | None:
    """Return the Theil-Sen slope of autocorrelated values with Sen's interval (JASA 63, 1968).

    For autocorrelated values, the variance of Kendall's statistic S is larger than for independent
    values, by the factor `correlation_time` (Yue and Wang, Water Resources Management 18, 2004).
    The interval uses Student's t distribution, because many autocorrelated values may contain as
    little evidence as a few independent values. The result is None if the values contain less
    evidence than FEWEST independent values, or too little evidence for an interval.
    """
    n = len(values)
    earlier, later = np.triu_indices(n, 1)
    slopes = np.sort((values[later] - values[earlier]) / (times[later] - times[earlier]))
    slope = float(np.median(slopes))
    worth = n / correlation_time(values - slope * times)
    if worth < FEWEST:
        return None
    deviation = np.sqrt(n / worth * n * (n - 1) * (2 * n + 5) / 18)
    half = special.stdtrit(worth - 2, 1 - TAIL) * deviation
    low = int((len(slopes) - half) // 2) - 1
    return Interval(slope, float(slopes[low]), float(slopes[-1 - low])) if low >= 0 else None


def random_walk(times: Floats, values: Floats) -> Interval:
    """Return the mean slope of a random walk, with an interval from Student's t distribution.

    `values` has one value per block of the random walk. The steps of a random walk are independent,
    but successive differences between blocks have a correlation coefficient of 1/4 (Working,
    Econometrica 28, 1960). If the values always return to the same level, they are no random walk,
    and the interval is too wide.
    """
    found = mean_interval(np.diff(values) / np.diff(times))
    half = np.sqrt(1 + 2 * 0.25) * (found.high - found.value)
    return Interval(found.value, found.value - half, found.value + half)


def correlation_time(residuals: Floats) -> float:
    """Return how many autocorrelated values contain as much evidence as one independent value; at
    least 1.

    The function assumes a first-order autoregressive process, and estimates its coefficient from
    the autocorrelation of the ranks at lag 1. For n residuals of a fitted line, this
    autocorrelation has a bias of -(2 + 4 x coefficient) / n (Kendall, Biometrika 41, 1954). The
    function corrects this bias.
    """
    from scipy import stats  # a slow import

    n = len(residuals)
    ranks = stats.rankdata(residuals) - (n + 1) / 2
    if not ranks.any():
        return 1.0
    found = float(ranks[1:] @ ranks[:-1] / (ranks @ ranks))
    coefficient = np.clip((found + 2 / n) / (1 - 4 / n), 0, 1 - 1 / n)
    return float((1 + coefficient) / (1 - coefficient))
