"""What differs between two measurements of the same: the noise that a difference is held against.

How far repeats of the same lie apart is the host's, and few repeats of one load line hardly tell.
So all that was repeated on a server in both studies tells of it together, and as far as servers are
alike, what was repeated on the others (docs/explanation/comparison.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from perseus.peak.between_repeats import Group, deviation_draws_of_each, log_moments
from perseus.peak.outcome import Outcome
from perseus.peak.stats import TAIL, Floats
from perseus.results.compare.source import Source
from perseus.results.repeats import key

FROM_REPEATS, FROM_AA, FROM_PRIOR = "repeats", "aa", "prior"


@dataclass(frozen=True)
class HostNoise:
    """Of both studies together.

    `deviations` are, by server, draws (draws,) of the standard deviation of the logarithm between
    repeats, and `known_from` says what tells of it. `floors` are the noise floors of single cells
    by server, where an experiment `aa` measured them: the highest of both studies.
    """

    deviations: dict[str, Floats]
    known_from: str
    floors: dict[str, float]
    draws: int

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
    names = [str(name) for source in sources for name in source.tables["peaks"]["server"]]
    groups: dict[str, list[Group]] = {name: [] for name in names}
    for server, told in of_repeats or of_aa:
        groups.setdefault(server, []).append(told)
    floors: dict[str, float] = {}
    for source in sources:
        known = source.tables["aa"].dropna(subset=["noise_floor"])
        for of, floor in known.groupby("server")["noise_floor"].max().items():
            floors[str(of)] = max(floor, floors.get(str(of), 0.0))
    return HostNoise(
        deviations=deviation_draws_of_each(groups, rng, draws),
        known_from=known_from,
        floors=floors,
        draws=draws,
    )


def repeated_peaks(source: Source) -> Iterator[tuple[str, Group]]:
    """Each load line of which two repeats or more measured a limit, with its server: predictions
    are none."""
    found: dict[tuple[str, str, str], list[Floats]] = {}
    for record in source.records:
        if record.has_limit and record.outcome != Outcome.PREDICTED:
            posterior = np.array(record.posterior_scales)
            found.setdefault((record.task.server.name, *key(record.task)), []).append(posterior)
    return ((of[0], log_moments(each)) for of, each in found.items() if len(each) > 1)


def _restarted(aa: pd.DataFrame) -> Iterator[tuple[str, Group]]:
    """Each cell of `aa` that was measured whole, with its server: the answers of its servers."""
    known = aa.dropna(subset=["noise_floor", "answered_rps", "low_rps", "high_rps"])
    for (server, _), rows in known.groupby(["server", "cell"], sort=False):
        half = (rows["high_rps"] - rows["low_rps"]) / 2
        error = half / stats.t.ppf(1 - TAIL, rows["windows"] - 1) / rows["answered_rps"]
        logs = np.log(rows["answered_rps"].to_numpy())
        yield str(server), (logs, np.square(error.to_numpy()))
