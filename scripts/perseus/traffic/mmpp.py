"""Draw arrivals of a Markov-modulated Poisson process: a Poisson process whose rate alternates
between a high rate in bursts and a low rate between bursts.

The durations of bursts, and of the intervals between bursts, are exponentially distributed (Heffes
and Lucantoni, IEEE JSAC 4, 1986).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Mmpp:
    """A Markov-modulated Poisson process with two states: bursts, and the intervals between bursts.

    In a burst, the rate is `burst_factor` times the rate between bursts. A burst lasts `burst_s`
    seconds on average. On average, bursts fill the share `burst_share` of the time.
    """

    burst_factor: float
    burst_s: float
    burst_share: float

    def rates_rps(self, mean_rps: float) -> tuple[float, float]:
        """Return the rate between bursts and the rate in bursts, in requests/s. The mean of the
        rate over time is `mean_rps`."""
        quiet_rps = mean_rps / (1 + self.burst_share * (self.burst_factor - 1))
        return quiet_rps, self.burst_factor * quiet_rps

    def times_s(
        self, rate_rps: float, duration_s: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return ascending send times in [0, duration_s), in seconds since the start of the window.
        The window begins at a random moment of the process. `rate_rps` is the mean rate."""
        edges_s, in_burst = self._states(duration_s, rng)
        quiet_rps, burst_rps = self.rates_rps(rate_rps)
        each = np.where(in_burst, burst_rps, quiet_rps) * np.diff(edges_s)
        expected = np.append(0.0, np.cumsum(each))
        # Given their number, the arrivals of a Poisson process with a varying rate are uniformly
        # distributed in operational time: in the expected number of arrivals since the start. Draw
        # operational times, and convert them into seconds.
        count = rng.poisson(expected[-1])
        return np.interp(np.sort(rng.uniform(0, expected[-1], count)), expected, edges_s)

    def _states(
        self, duration_s: float, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Draw the sequence of n states of the process in a window of `duration_s` seconds.

        Return two arrays. The first array, shape (n + 1,), contains the start of each state and the
        end of the last state in seconds. The second array, shape (n,), says whether each state is a
        burst.
        """
        quiet_s = self.burst_s * (1 - self.burst_share) / self.burst_share
        edges_s, in_burst = [0.0], [bool(rng.random() < self.burst_share)]
        while True:
            end_s = edges_s[-1] + rng.exponential(self.burst_s if in_burst[-1] else quiet_s)
            if end_s >= duration_s:
                return np.array([*edges_s, duration_s]), np.array(in_burst)
            edges_s.append(end_s)
            in_burst.append(not in_burst[-1])
