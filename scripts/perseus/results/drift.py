"""Drift of a quantity over hours, with an interval that allows for autocorrelation
(docs/explanation/soak.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy import special

from perseus.peak.stats import TAIL, UNKNOWN, Floats, Interval, batches, mean_interval

BLOCKS = 30
"""Largest number of blocks into which values are joined, so that correlated neighbours are in
one block."""

FEWEST = 8
"""Least number of blocks for a statement, and least number of independent values; with fewer
independent values, a random walk is assumed."""

STEADY = 0.1
"""Change per hour, as a share of the scale, that a steady quantity must exclude."""

MIN_CHANGE = 0.01
"""Least change over the whole time, as a share of the scale, that is a drift: the memory of a
healthy server settled by 0.4 % in a minute."""


class Trend(StrEnum):
    STEADY = "steady"
    GROWS = "grows"
    FALLS = "falls"
    INFINITE = "infinite at times"
    UNKNOWN = "too short to tell"


@dataclass(frozen=True)
class Drift:
    """A line through values over time.

    `first` is the index of the first value after the warm-up, `level` the value of the line there,
    `per_hour` its slope, and `hours` its length. Changes are small or large relative to `scale`.
    Level and slope are NaN if there are too few values. The line is fitted to the finite values;
    `was_infinite` says that there were infinite ones.
    """

    first: int
    hours: float
    level: float
    per_hour: Interval
    scale: float
    was_infinite: bool = False

    @property
    def trend(self) -> Trend:
        """The significant trend; "steady" only if any larger drift is excluded."""
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
    """Return the drift of values over time, both of shape (n,), in the order of time.

    Changes are relative to the level, or to `scale` if given.
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
    """Return the number of first values in the warm-up: at most half of all values.

    The truncation minimises the standard error of the slope of the rest. MSER (White, Simulation
    69(6), 1997) minimises that of the mean, which would mistake a drift for a warm-up.
    """
    n = len(values)
    if n < 2 * FEWEST:
        return 0
    x, y = hours - hours.mean(), values - values.mean()
    left = np.arange(n, 0, -1)

    def squares(a: Floats, b: Floats) -> Floats:
        """Return the squared deviations from the mean, for each truncation."""
        sums = [np.cumsum(each[::-1])[::-1] for each in (a * b, a, b)]
        return np.asarray(sums[0] - sums[1] * sums[2] / left)[: n // 2 + 1]

    of_time, rounding = squares(x, x), 1e-9 * float(y @ y)
    residual = np.maximum(squares(y, y) - squares(x, y) ** 2 / of_time, rounding)
    return int(np.argmin(residual / (left[: n // 2 + 1] - 2) / of_time))


def blocks(values: Floats) -> Floats:
    """Return the medians of consecutive blocks, which are robust against outliers."""
    return np.array([np.median(each) for each in batches(values, BLOCKS)])


def sen(times: Floats, values: Floats) -> Interval | None:
    """Return the Theil-Sen slope with Sen's interval (JASA 63, 1968), for autocorrelated values;
    None if there are too few values.

    The variance of Kendall's S is that of independent values times their correlation time (Yue and
    Wang, Water Resources Management 18, 2004). The interval uses Student's t, since few independent
    values remain.
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
    """Return the mean of the increments, with Student's interval.

    This is for a random walk, whose increments are independent. The increments between blocks of a
    walk are correlated, with a coefficient of 1/4 (Working, Econometrica 28, 1960). If the values
    return to a level after all, the interval is too wide.
    """
    found = mean_interval(np.diff(values) / np.diff(times))
    half = np.sqrt(1 + 2 * 0.25) * (found.high - found.value)
    return Interval(found.value, found.value - half, found.value + half)


def correlation_time(residuals: Floats) -> float:
    """Return the number of values of an autoregressive process per independent value; at least 1.

    Its coefficient is the autocorrelation of the ranks at lag 1, corrected for the bias around a
    fitted line, -(2 + 4 x coefficient) / n (Kendall, Biometrika 41, 1954).
    """
    from scipy import stats  # not at the top: the import takes longer than most jobs run

    n = len(residuals)
    ranks = stats.rankdata(residuals) - (n + 1) / 2
    if not ranks.any():
        return 1.0
    found = float(ranks[1:] @ ranks[:-1] / (ranks @ ranks))
    coefficient = np.clip((found + 2 / n) / (1 - 4 / n), 0, 1 - 1 / n)
    return float((1 + coefficient) / (1 - coefficient))
