"""Draw arrivals with gamma-distributed gaps. The more the gaps vary, the more the arrivals come in
bursts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class GammaGaps:
    """An arrival process with independent, gamma-distributed gaps. `cv` is the coefficient of
    variation of the gaps; with a `cv` of 1, the process is Poisson.

    Each window begins at a random moment of the process. Therefore the expected number of arrivals
    is exactly rate x duration, even in a short window. If windows began at an arrival, the expected
    number would differ from this product.
    """

    cv: float

    def times_s(
        self, rate_rps: float, duration_s: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return ascending send times in [0, duration_s), in seconds since the start of the
        window."""
        shape, scale_s = 1 / self.cv**2, self.cv**2 / rate_rps
        # The probability that a random moment lies in a gap is proportional to the length of the
        # gap. The moment is uniformly distributed over the gap (Cox, Renewal Theory, 1962, ch. 5).
        times_s = np.array([rng.random() * rng.gamma(shape + 1, scale_s)])
        while times_s[-1] < duration_s:
            gaps_s = rng.gamma(shape, scale_s, int(duration_s * rate_rps * 1.1) + 16)
            times_s = np.append(times_s, times_s[-1] + np.cumsum(gaps_s))
        return times_s[times_s < duration_s]
