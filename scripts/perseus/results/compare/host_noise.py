"""What differs between two measurements of the same: the noise that a difference is held against.

How far repeats of the same lie apart is the host's, and few repeats of one load line hardly tell.
So all that was repeated in both studies tells of it together (docs/method.md, "Two results
compared").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from perseus.peak.between_repeats import log_moments, shared_deviation_draws
from perseus.peak.outcome import Outcome
from perseus.peak.stats import TAIL, Floats
from perseus.results.compare.source import Source
from perseus.results.repeats import key

Group = tuple[Floats, Floats]
"""Something that was repeated: means of the logarithm of what each repeat found, and variances."""

FROM_REPEATS, FROM_AA, FROM_PRIOR = "repeats", "aa", "prior"


@dataclass(frozen=True)
class HostNoise:
    """Of both studies together.

    `deviations` (draws,) are draws of the standard deviation of the logarithm between repeats, and
    `known_from` says what tells of it. `floors` are the noise floors of single cells by server,
    where an experiment `aa` measured them: the highest of both studies.
    """

    deviations: Floats
    known_from: str
    floors: dict[str, float]

    def floor(self, server: str, repeats: Sequence[int]) -> float:
        """Of means of so many repeats in each study; NaN where it was not measured."""
        single = self.floors.get(server, np.nan)
        return single * float(np.sqrt(np.mean(1 / np.array(repeats, dtype=float))))


def host_noise(sources: Sequence[Source], rng: np.random.Generator, draws: int) -> HostNoise:
    """Repeats tell of it, otherwise servers restarted for `aa`, which lie closer in time.

    Where neither was measured the prior stands: what hosts were seen to wander by.
    """
    of_repeats = [each for source in sources for each in repeated_peaks(source)]
    of_aa = [each for source in sources for each in _restarted(source.tables["aa"])]
    known_from = FROM_REPEATS if of_repeats else FROM_AA if of_aa else FROM_PRIOR
    floors: dict[str, float] = {}
    for source in sources:
        known = source.tables["aa"].dropna(subset=["noise_floor"])
        for server, floor in known.groupby("server")["noise_floor"].max().items():
            floors[str(server)] = max(floor, floors.get(str(server), 0.0))
    return HostNoise(
        deviations=shared_deviation_draws(of_repeats or of_aa, rng, draws),
        known_from=known_from,
        floors=floors,
    )


def repeated_peaks(source: Source) -> Iterator[Group]:
    """Each load line of which two repeats or more measured a limit: predictions are none."""
    found: dict[tuple[str, str], list[Floats]] = {}
    for record in source.records:
        if record.has_limit and record.outcome != Outcome.PREDICTED:
            posterior = np.array(record.posterior_scales)
            found.setdefault(key(record.task), []).append(posterior)
    return (log_moments(each) for each in found.values() if len(each) > 1)


def _restarted(aa: pd.DataFrame) -> Iterator[Group]:
    """Each cell of `aa` that was measured whole: the answers of its servers."""
    known = aa.dropna(subset=["noise_floor", "answered_rps", "low_rps", "high_rps"])
    for _, rows in known.groupby("cell", sort=False):
        half = (rows["high_rps"] - rows["low_rps"]) / 2
        error = half / stats.t.ppf(1 - TAIL, rows["windows"] - 1) / rows["answered_rps"]
        yield np.log(rows["answered_rps"].to_numpy()), np.square(error.to_numpy())
