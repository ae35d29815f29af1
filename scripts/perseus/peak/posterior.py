"""The posterior distribution of a limit, from the late requests of the windows near it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.linalg import toeplitz

from perseus.peak.exceedance_curve import ExceedanceCurve
from perseus.peak.stats import Floats

DISPERSIONS = 5
"""Quantiles of the uncertain dispersion over which the posterior is averaged."""

REACH = float(np.log(1.5))
"""Distance beyond the offered loads up to which a limit is searched, as a logarithm."""

OPEN = 0.15
"""Density at an end of the range, as a share of the highest, above which the limit is open at
that end: the density of a normal distribution at the ends of its 95 % interval."""

BEYOND = 5 * REACH
"""Distance by which the range is then extended, as a logarithm; the prior falls by a factor of e
for each REACH."""

POINTS, SLOPES = 300, 15
"""Points of the grids of log(limit) and of the slope."""

WANDERS = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
"""Scales of the random factors on the speed of a host in each window; the first is for a steady
host."""

USUAL_WANDER = 0.03
"""Prior scale of these factors: the throughput of a busy server changes by some percent within
seconds, and by 20 % within minutes."""

TINY = 1e-300

TAILS = 3
"""Degrees of freedom of Student's t distribution of these factors: heavy tails allow for bursts."""


@dataclass(frozen=True)
class LateCounts:
    """Number of late requests of each window; shape (k,) each.

    `weights` is the number of independent requests per request. It rests on a dispersion that is
    known like a variance with `freedom` degrees of freedom.
    """

    log_scales: Floats
    late: Floats
    requests: Floats
    weights: Floats
    freedom: float

    @property
    def weighted(self) -> Floats:
        """Late requests and other requests of each window, shape (k, 2)."""
        counts = np.stack([self.late, self.requests - self.late], axis=1)
        weighted: Floats = counts * self.weights[:, None]
        return weighted


@dataclass(frozen=True)
class Posterior:
    """Possible limits with their density.

    The model is logit p(s) = level + m (logit v(s / limit) - level), with v the curve of the
    virtual queue. The prior on m is lognormal. The prior on log(limit) is flat up to REACH beyond
    the offered loads, and falls exponentially beyond that. Hosts change their speed, so each window
    has its own limit: the common one times a factor whose logarithm is a draw of Student's t, with
    a scale that the windows determine. The density is averaged over the uncertain dispersion.
    """

    log_limits: Floats
    density: Floats

    @classmethod
    def of(
        cls, counts: LateCounts, curve: ExceedanceCurve, slope_spread: float, beyond: float = 0.0
    ) -> Posterior:
        """The posterior. `slope_spread` is the prior standard deviation of log(m); the limit is
        searched up to `beyond` times REACH."""
        scales, weighted = counts.log_scales, counts.weighted
        low, high = scales.min() - REACH, scales.max() + REACH
        log_limits = np.linspace(low - beyond, high + beyond, POINTS)
        slopes = np.exp(np.linspace(-2.5, 2.5, SLOPES) * slope_spread)
        prior = -0.5 * (np.log(slopes) / slope_spread) ** 2
        shape = curve.above_level(scales[:, None] - log_limits)  # (k, POINTS)
        logit = curve.level + slopes[:, None, None] * shape
        # log p = logit - log(1 + exp(logit)), and log(1 - p) without the first term.
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
        """Whether the limit may lie outside the searched range."""
        return bool(self.density[[0, -1]].max() > OPEN * self.density.max())

    def at(self, shares: float | Sequence[float]) -> Floats:
        """Quantiles of the logarithm of the limit."""
        summed = np.cumsum(self.density) / self.density.sum()
        return np.asarray(np.interp(shares, summed, self.log_limits))


def _wander_prior() -> Floats:
    """Prior probabilities of WANDERS: nearly a half-Cauchy distribution, on a logarithmic grid."""
    scales = np.maximum(WANDERS, WANDERS[1])
    weights = scales / (1 + (scales / USUAL_WANDER) ** 2)
    return weights / weights.sum()


def _wandering(log_limits: Floats, scale: float) -> Floats:
    """Return the probability of a window's own limit at each point, given the limit; shape (POINTS,
    POINTS)."""
    away = (log_limits - log_limits[0]) / scale
    moved = toeplitz((1 + away**2 / TAILS) ** (-(TAILS + 1) / 2))
    likely: Floats = moved / moved.sum(axis=0)
    return likely
