"""Markov-modulated Poisson arrivals with two states: bursts, and pauses between them.

In each state, arrivals are a Poisson process. The duration of a state is exponential (Heffes and
Lucantoni, IEEE JSAC 4, 1986, for the index of dispersion).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Mmpp:
    """A Markov-modulated Poisson process.

    In a burst the rate is `burst_factor` times the rate between bursts. The mean length of a burst
    is `burst_s`, and bursts take `burst_share` of the time.
    """

    burst_factor: float
    burst_s: float
    burst_share: float

    def rates_rps(self, mean_rps: float) -> tuple[float, float]:
        """Return the rates between bursts and in bursts, so that the mean over time is
        `mean_rps`."""
        quiet_rps = mean_rps / (1 + self.burst_share * (self.burst_factor - 1))
        return quiet_rps, self.burst_factor * quiet_rps

    def times_s(
        self, rate_rps: float, duration_s: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return send times in [0, duration_s), ascending, from a random moment of the process
        on."""
        edges_s, in_burst = self._states(duration_s, rng)
        quiet_rps, burst_rps = self.rates_rps(rate_rps)
        each = np.where(in_burst, burst_rps, quiet_rps) * np.diff(edges_s)
        expected = np.append(0.0, np.cumsum(each))
        # Given their number, the arrivals of a Poisson process are uniform in operational time.
        count = rng.poisson(expected[-1])
        return np.interp(np.sort(rng.uniform(0, expected[-1], count)), expected, edges_s)

    def _states(
        self, duration_s: float, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return start times of states and the end of the last, shape (n + 1,), and whether each is
        a burst, (n,)."""
        quiet_s = self.burst_s * (1 - self.burst_share) / self.burst_share
        edges_s, in_burst = [0.0], [bool(rng.random() < self.burst_share)]
        while True:
            end_s = edges_s[-1] + rng.exponential(self.burst_s if in_burst[-1] else quiet_s)
            if end_s >= duration_s:
                return np.array([*edges_s, duration_s]), np.array(in_burst)
            edges_s.append(end_s)
            in_burst.append(not in_burst[-1])
