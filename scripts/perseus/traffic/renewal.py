"""Arrivals with gamma-distributed gaps; a larger variation makes them burstier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class GammaGaps:
    """A renewal process whose gaps have the coefficient of variation `cv`; 1 is Poisson.

    A window begins at a random moment of the process, so that the mean rate is exact for any
    length. If it began at an arrival, there would be too many arrivals at first.
    """

    cv: float

    def times_s(
        self, rate_rps: float, duration_s: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return send times in [0, duration_s), ascending."""
        shape, scale_s = 1 / self.cv**2, self.cv**2 / rate_rps
        # The probability that a random moment lies in a gap is proportional to its length; its
        # position in the gap is uniform (Cox, Renewal Theory, 1962, chapter 5).
        times_s = np.array([rng.random() * rng.gamma(shape + 1, scale_s)])
        while times_s[-1] < duration_s:
            gaps_s = rng.gamma(shape, scale_s, int(duration_s * rate_rps * 1.1) + 16)
            times_s = np.append(times_s, times_s[-1] + np.cumsum(gaps_s))
        return times_s[times_s < duration_s]
