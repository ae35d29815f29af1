"""Compute the noise floor of a host from repeated measurements of the same throughput
(docs/explanation/noise.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from perseus.peak.stats import TAIL, Interval


@dataclass(frozen=True)
class Noise:
    """Variation of throughputs that would all be equal on a host without noise.

    `capacity_rps` is the mean throughput. The other values are shares of `capacity_rps`.
    `between_windows` is the standard deviation between the windows after one start of the server.
    `between_restarts` is the standard deviation between the mean throughputs after different
    starts, and includes a part of the variation between windows. `floor` is the noise floor: for
    only 5 % of the pairs of server starts, the throughputs after the two starts differ by more than
    this share.
    """

    capacity_rps: float
    between_windows: Interval
    between_restarts: Interval
    floor: float


def noise(capacities_rps: ArrayLike) -> Noise:
    """Return the noise of a host. `capacities_rps`, shape (n, m), has the throughput in each of m
    windows after each of n starts of a server; n and m must be at least 2.

    The noise floor is t(0.975, n - 1) x sqrt(2) x (standard deviation between restarts): the
    repeatability limit of ISO 5725-6. The standard uses 1.96 instead of Student's t, because it
    assumes that the standard deviation is known exactly. Perseus estimates the standard deviation
    from only n starts.
    """
    rates = np.asarray(capacities_rps, dtype=float)
    (n, m), mean = rates.shape, float(rates.mean())
    within = float(np.sqrt(rates.var(axis=1, ddof=1).mean())) / mean
    between = float(rates.mean(axis=1).std(ddof=1)) / mean
    return Noise(
        capacity_rps=mean,
        between_windows=deviation(within, n * (m - 1)),
        between_restarts=deviation(between, n - 1),
        floor=float(special.stdtrit(n - 1, 1 - TAIL)) * np.sqrt(2) * between,
    )


def deviation(found: float, freedom: int) -> Interval:
    """Return the measured standard deviation `found` with its 95 % interval.

    The interval assumes normally distributed values, and follows from the chi-squared distribution
    with `freedom` degrees of freedom.
    """
    low, high = np.sqrt(freedom / (2 * special.gammaincinv(freedom / 2, [1 - TAIL, TAIL])))
    return Interval(found, found * float(low), found * float(high))
