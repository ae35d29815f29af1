"""Replay recorded arrivals, also at another speed or with another mean rate than recorded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perseus.study.recorded import Recorded

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Replayed:
    """The replay of a recording. The replay begins `begin_s` seconds after the start of the
    recording, and one recorded second takes `time_scale` seconds in the replay."""

    recorded: Recorded
    begin_s: float = 0.0
    time_scale: float = 1.0

    def rate_rps(self, duration_s: float) -> float:
        """Return the mean rate in requests/s of a replay of `duration_s` seconds, if the client
        sends one request for each recorded arrival."""
        return float(self._expected(duration_s).sum()) / duration_s

    def times_s(self, rate_rps: float, duration_s: float, rng: np.random.Generator) -> Floats:
        """Return ascending send times in [0, duration_s) with the mean rate `rate_rps`, in seconds
        since the start of the window.

        To lower the recorded rate, the function keeps each arrival with the probability `rate_rps`
        / recorded rate (thinning). To raise the rate, the function adds copies of the replayed part
        (superposition). The function shifts each copy cyclically by a random time, and thins the
        last copy so that the mean rate is `rate_rps`. The replayed part of the recording must
        contain arrivals.
        """
        copies, rest = divmod(rate_rps / self.rate_rps(duration_s), 1.0)
        shares = np.append(np.ones(int(copies)), rest)
        turns_s = np.append(0.0, rng.uniform(0, duration_s, int(copies)))
        touched = self._expected(duration_s) > 0
        # A recorded day may have a billion arrivals, so only kept arrivals get a time.
        kept = rng.binomial(self.recorded.counts[touched], shares[:, np.newaxis])
        starts_s = np.broadcast_to(self.recorded.starts_s[touched], kept.shape)
        times_s = np.repeat(starts_s, kept.ravel())
        times_s += self.recorded.interval_s * rng.random(len(times_s))
        offered_s = (times_s - self.begin_s) * self.time_scale
        inside = (offered_s >= 0) & (offered_s < duration_s)
        turned_s = (offered_s + np.repeat(turns_s, kept.sum(axis=1))) % duration_s
        return np.sort(turned_s[inside])

    def _expected(self, duration_s: float) -> Floats:
        """Return the expected number of replayed arrivals from each interval of the recording. The
        replay lasts `duration_s` seconds."""
        return self.recorded.expected(self.begin_s, self.begin_s + duration_s / self.time_scale)
