"""Draw the send times of a window from an arrival process before the window starts.

All send times are relative to the start of the window. If a client instead counted each send time
from the previous send, the delays of its sends would add up. The default process is Poisson,
because evenly spaced requests would wait in the queue too seldom.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from perseus.traffic.renewal import GammaGaps


@dataclass(frozen=True)
class Arrivals:
    """An arrival process.

    Only the process "gamma" uses `cv`, the coefficient of variation of the gaps between arrivals.
    Only the process "trace" uses `gaps_s`, the gaps in seconds between the arrivals of a recorded
    trace (see `study.recorded`).
    """

    process: Literal["poisson", "constant", "gamma", "trace"] = "poisson"
    cv: float = 1.0
    gaps_s: tuple[float, ...] = ()

    @cached_property
    def _circle(self) -> NDArray[np.float64]:
        """The arrival times in one repetition of the trace, without the first arrival.

        Times count from the first arrival, in units of the mean gap. The last entry is the first
        arrival of the next repetition: it follows one mean gap after the last arrival.
        """
        gaps = np.array(self.gaps_s)
        return np.cumsum(np.append(gaps / gaps.mean(), 1.0))

    def times_s(
        self, rate_rps: float, duration_s: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return ascending send times in [0, duration_s), in seconds since the start of the window;
        empty if the rate is 0.

        Raises ValueError if the rate or the duration is negative or not finite.
        """
        for name, value in (("rate_rps", rate_rps), ("duration_s", duration_s)):
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and >= 0, not {value}")
        if rate_rps == 0 or duration_s == 0:
            return np.empty(0)
        mean_gap_s = 1 / rate_rps
        if self.process == "constant":
            # With a random start, tenants at equal rates do not send at the same times.
            return np.arange(rng.uniform(0, mean_gap_s), duration_s, mean_gap_s)
        if self.process == "trace":
            times = _replayed(self._circle, duration_s / mean_gap_s, rng) * mean_gap_s
            return times[times < duration_s]
        if self.process == "gamma" and self.cv != 1:
            return GammaGaps(self.cv).times_s(rate_rps, duration_s, rng)
        # A Poisson process has no memory, so its arrivals need no random start.
        chunk = int(duration_s * rate_rps * 1.1) + 16
        times = np.cumsum(rng.exponential(mean_gap_s, chunk))
        while times[-1] < duration_s:
            more = np.cumsum(rng.exponential(mean_gap_s, chunk))
            times = np.concatenate([times, times[-1] + more])
        return times[times < duration_s]


def _replayed(
    circle: NDArray[np.float64], duration: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return the arrival times in an interval of length `duration` of an endlessly repeated trace.

    The interval begins at a random position in the trace. `circle` contains the arrival times in
    one repetition (`Arrivals._circle`). All times are in units of the mean gap of the trace.
    """
    start = rng.uniform(0, circle[-1])
    laps, rest = divmod(start + duration, circle[-1])
    last = int(laps) * len(circle) + np.searchsorted(circle, rest)
    lap, place = np.divmod(np.arange(np.searchsorted(circle, start), last), len(circle))
    return np.asarray(lap * circle[-1] + circle[place] - start)


def stream(seed: int, repeat: int, tenant: int) -> np.random.Generator:
    """Return the random generator for the arrivals of one tenant in one repeat. The generators of
    different tenants or repeats are independent."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(repeat, tenant)))
