"""The posterior of a limit, by the late requests of windows around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from perseus.peak.exceedance_curve import ExceedanceCurve
from perseus.peak.stats import Floats

DISPERSIONS = 9
"""Quantiles of the uncertain dispersion over which the posterior is averaged."""

REACH = float(np.log(1.5))
"""How far beyond the loads that were offered a limit is looked for, as a logarithm."""


@dataclass(frozen=True)
class LateCounts:
    """How many of the requests of each window were late; shape (k,) each.

    `weights` says how many independent requests one of them is worth, which rests on a dispersion
    that is known like a variance with so much `freedom`.
    """

    log_scales: Floats
    late: Floats
    requests: Floats
    weights: Floats
    freedom: float

    @property
    def weighted(self) -> Floats:
        """The late and the other requests of each window, shape (k, 2)."""
        counts = np.stack([self.late, self.requests - self.late], axis=1)
        weighted: Floats = counts * self.weights[:, None]
        return weighted

    def scatter(self, fitted: Floats) -> float:
        """How much more the windows scatter around the fit than episodes explain; at least 1.

        Pearson's chi-squared over its degrees of freedom, as if two windows more had been as
        expected: a host whose speed changes from window to window, or a curve of another shape.
        """
        variance = np.maximum(self.requests * fitted * (1 - fitted), 1) / self.weights
        chi_squared = float(np.sum((self.late - self.requests * fitted) ** 2 / variance))
        return max(1.0, (chi_squared + 2) / max(len(self.late), 2))


@dataclass(frozen=True)
class Posterior:
    """Possible limits with their density, and per window the share of late requests that fits best.

    logit p(s) = level + m (logit v(s / limit) - level), with v the curve of the virtual queue; a
    lognormal prior on m, a flat one on log(limit) as far as REACH beyond the loads offered. The
    density is averaged over how uncertain the dispersion is.
    """

    log_limits: Floats
    density: Floats
    fitted: Floats

    @classmethod
    def of(cls, counts: LateCounts, curve: ExceedanceCurve, slope_spread: float) -> Posterior:
        """`slope_spread` is the prior standard deviation of log(m)."""
        scales, weighted = counts.log_scales, counts.weighted
        log_limits = np.linspace(scales.min() - REACH, scales.max() + REACH, 1500)
        slopes = np.exp(np.linspace(-2.5, 2.5, 31) * slope_spread)
        shape = curve.above_level(scales - log_limits[:, None])
        logit = curve.level + slopes[:, None, None] * shape
        # log p = logit - log(1 + exp(logit)), and log(1 - p) without the first term.
        likelihood = logit @ weighted[:, 0] - np.logaddexp(0, logit) @ weighted.sum(axis=1)
        prior = -0.5 * (np.log(slopes) / slope_spread)[:, None] ** 2
        density = np.zeros(len(log_limits))
        levels = (np.arange(DISPERSIONS) + 0.5) / DISPERSIONS
        for factor in stats.chi2.ppf(levels, counts.freedom) / counts.freedom:
            log_density = factor * likelihood + prior
            posterior = np.exp(log_density - log_density.max()).sum(axis=0)
            density += posterior / posterior.sum()
        best = np.unravel_index(np.argmax(likelihood + prior), likelihood.shape)
        return cls(log_limits, density, 1 / (1 + np.exp(-logit[best])))

    def at(self, shares: float | Sequence[float]) -> Floats:
        """Quantiles of the logarithm of the limit."""
        summed = np.cumsum(self.density) / self.density.sum()
        return np.asarray(np.interp(shares, summed, self.log_limits))
