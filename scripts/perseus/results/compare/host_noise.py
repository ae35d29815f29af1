"""Estimate the noise of a host: how much two measurements of the same configuration differ by
chance.

A single load line has too few repeats for such an estimate. For each server, Perseus therefore uses
all load lines with several repeats in both studies, also the load lines on other servers
(docs/explanation/comparison.md).
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
    """Noise of the hosts of two studies, estimated from both studies together.

    `deviations` says how much results vary between repeats: for each server, draws of the standard
    deviation of the logarithm of a result, shape (draws,). `known_from` says whether these draws
    come from repeats, from an experiment `aa` or from a prior distribution.

    `floors` has the noise floor of each server from an experiment `aa`. If both studies measured
    the noise floor, `floors` has the higher one. These noise floors are for results of a single
    repeat; `floor` computes the noise floor for several repeats.
    """

    deviations: dict[str, Floats]
    known_from: str
    floors: dict[str, float]
    draws: int

    def floor(self, server: str, repeats: Sequence[int]) -> float:
        """Return the noise floor for results that are means over `repeats`; NaN if neither study
        measured a noise floor on this server.

        `repeats` has the number of repeats in each study.
        """
        single = self.floors.get(server, np.nan)
        return single * float(np.sqrt(np.mean(1 / np.array(repeats, dtype=float))))


def host_noise(sources: Sequence[Source], rng: np.random.Generator, draws: int) -> HostNoise:
    """Estimate the noise of the hosts from repeats or, without repeats, from an experiment `aa`.

    Repeats are better evidence: the restarts in an experiment `aa` follow one another quickly, so
    the host changes less than between repeats. If no load line of either study has several repeats,
    and neither study has an experiment `aa`, the function draws the noise from a prior distribution
    that describes real hosts.
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
    """For each load line with at least two repeats, yield the name of its server, the logarithm of
    each repeat's peak, and the variance of each logarithm.

    The function leaves out predicted repeats, and repeats that found no limit of the server.
    """
    found: dict[tuple[str, str, str], list[Floats]] = {}
    for record in source.records:
        if record.has_limit and record.outcome != Outcome.PREDICTED:
            posterior = np.array(record.posterior_scales)
            found.setdefault((record.task.server.name, *key(record.task)), []).append(posterior)
    return ((of[0], log_moments(each)) for of, each in found.items() if len(each) > 1)


def _restarted(aa: pd.DataFrame) -> Iterator[tuple[str, Group]]:
    """For each complete cell of an experiment `aa`, yield the name of its server, the logarithm of
    the throughput after each restart, and the variance of each logarithm."""
    known = aa.dropna(subset=["noise_floor", "answered_rps", "low_rps", "high_rps"])
    for (server, _), rows in known.groupby(["server", "cell"], sort=False):
        half = (rows["high_rps"] - rows["low_rps"]) / 2
        error = half / stats.t.ppf(1 - TAIL, rows["windows"] - 1) / rows["answered_rps"]
        logs = np.log(rows["answered_rps"].to_numpy())
        yield str(server), (logs, np.square(error.to_numpy()))
