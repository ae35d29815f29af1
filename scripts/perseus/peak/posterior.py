"""Compute the posterior distribution of a limit from the numbers of late requests in the windows
near the limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.linalg import toeplitz

from perseus.peak.exceedance_curve import ExceedanceCurve
from perseus.peak.stats import Floats

DISPERSIONS = 5
"""Number of values of the dispersion (`stats.dispersion`) over which the posterior is averaged. The
dispersion is uncertain, and the values are quantiles of its distribution."""

REACH = float(np.log(1.5))
"""Natural logarithm of the factor by which the grid of possible limits extends beyond the loads of
the windows, at each end."""

OPEN = 0.15
"""The limit may lie outside the grid if the density at an end of the grid exceeds this share of the
highest density. For comparison, a normal density has this share of its maximum at the ends of its
95 % interval."""

BEYOND = 5 * REACH
"""If the limit may lie outside the grid, Perseus computes the posterior again on a wider grid.
BEYOND is the natural logarithm of the factor by which the wider grid extends beyond the first grid
at each end. In the additional part of the grid, the prior density falls exponentially, by a factor
of e for each distance REACH of log(limit)."""

POINTS, SLOPES = 300, 15
"""Numbers of grid points: POINTS for log(limit), and SLOPES for the slope m (`Posterior`)."""

WANDERS = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
"""Scale parameters that the distribution of log(limit in one window / common limit) may have. The
scale parameter describes how much the speed of the host varies from window to window. With the
scale 0, the speed is constant."""

USUAL_WANDER = 0.03
"""The prior of the scale parameters WANDERS is nearly a half-Cauchy distribution with this scale.
On real hosts, the throughput of a busy server changes by some percent within seconds, and by 20 %
within minutes."""

TINY = 1e-300

TAILS = 3
"""The distribution of log(limit in one window / common limit) is Student's t distribution with this
number of degrees of freedom. Because the tails of this distribution are heavy, one window during a
short burst of load on the host has little influence."""


@dataclass(frozen=True)
class LateCounts:
    """The numbers of requests and of late requests in k windows; all arrays have shape (k,).

    `log_scales` contains the logarithms of the load factors. Late requests come in clusters, so a
    request contains less information than an independent request. `weights` contains, for each
    window, the number of independent requests with as much information as one observed request. The
    weights depend on the estimated dispersion. This estimate is as uncertain as the estimate of a
    variance with `freedom` degrees of freedom.
    """

    log_scales: Floats
    late: Floats
    requests: Floats
    weights: Floats
    freedom: float

    @property
    def weighted(self) -> Floats:
        """Return the weighted number of late requests, and of requests within the SLA, in each
        window; shape (k, 2)."""
        counts = np.stack([self.late, self.requests - self.late], axis=1)
        weighted: Floats = counts * self.weights[:, None]
        return weighted


@dataclass(frozen=True)
class Posterior:
    """The posterior density over a grid of possible limits.

    The statistical model is logit p(s) = level + m (logit v(s / limit) - level). Here, p(s) is the
    share of late requests of the real server at the load factor s, and v(x) is the share of late
    requests of the virtual queue at x times its own limit. `level` is the logit of the share of
    late requests that the SLA allows. The slope m, with a lognormal prior, states how much steeper
    p is than v. The prior of log(limit) is flat from REACH below the lowest log(load factor) of the
    windows to REACH above the highest. Outside this range, the prior falls exponentially.

    Because the speed of a host changes, the limit in each window is a common limit times a random
    factor. The logarithm of this factor has Student's t distribution. WANDERS contains the possible
    scale parameters of this distribution. `density` is the posterior density of the logarithm of
    the common limit, averaged over the scale parameters, the slopes and the possible values of the
    dispersion.
    """

    log_limits: Floats
    density: Floats

    @classmethod
    def of(
        cls, counts: LateCounts, curve: ExceedanceCurve, slope_spread: float, beyond: float = 0.0
    ) -> Posterior:
        """Compute the posterior of a limit from the late requests in the windows near the limit.

        `curve` is the curve v of the virtual queue. `slope_spread` is the prior standard deviation
        of log(m). `beyond` is the natural logarithm of the factor by which the grid of possible
        limits is extended at each end.
        """
        scales, weighted = counts.log_scales, counts.weighted
        low, high = scales.min() - REACH, scales.max() + REACH
        log_limits = np.linspace(low - beyond, high + beyond, POINTS)
        slopes = np.exp(np.linspace(-2.5, 2.5, SLOPES) * slope_spread)
        prior = -0.5 * (np.log(slopes) / slope_spread) ** 2
        shape = curve.above_level(scales[:, None] - log_limits)  # (k, POINTS)
        logit = curve.level + slopes[:, None, None] * shape
        # log p = logit - log(1 + exp(logit)), and log(1 - p) = -log(1 + exp(logit)).
        likelihood = logit * weighted[:, :1] - np.logaddexp(0, logit) * weighted.sum(1)[:, None]
        density = np.zeros(POINTS)
        levels = (np.arange(DISPERSIONS) + 0.5) / DISPERSIONS
        wandering = [_wandering(log_limits, wander) for wander in WANDERS[1:]]
        for factor in stats.chi2.ppf(levels, counts.freedom) / counts.freedom:
            own = factor * likelihood
            highest = own.max(axis=-1, keepdims=True)
            steady = np.exp(own - highest)
            log_density = [
                prior[:, None] + np.sum(np.log(likely + TINY) + highest, axis=1)
                for likely in (steady, *(steady @ moved for moved in wandering))
            ]
            joint = np.exp(log_density - np.max(log_density)) * _wander_prior()[:, None, None]
            density += joint.sum(axis=(0, 1)) / joint.sum()
        away = np.abs(log_limits - np.clip(log_limits, low, high))
        return cls(log_limits, density * np.exp(-away / REACH))

    @property
    def is_open(self) -> bool:
        """Return whether the limit may lie outside the grid (OPEN)."""
        return bool(self.density[[0, -1]].max() > OPEN * self.density.max())

    def at(self, shares: float | Sequence[float]) -> Floats:
        """Return quantiles of log(limit) at the cumulative probabilities `shares`."""
        summed = np.cumsum(self.density) / self.density.sum()
        return np.asarray(np.interp(shares, summed, self.log_limits))


def _wander_prior() -> Floats:
    """Return the prior probability of each scale parameter in WANDERS."""
    scales = np.maximum(WANDERS, WANDERS[1])
    weights = scales / (1 + (scales / USUAL_WANDER) ** 2)
    return weights / weights.sum()


def _wandering(log_limits: Floats, scale: float) -> Floats:
    """Return the probability of each limit in one window (row), given the common limit (column);
    shape (POINTS, POINTS). `scale` is the scale parameter of Student's t distribution."""
    away = (log_limits - log_limits[0]) / scale
    moved = toeplitz((1 + away**2 / TAILS) ** (-(TAILS + 1) / 2))
    likely: Floats = moved / moved.sum(axis=0)
    return likely
