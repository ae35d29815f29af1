"""Predict the sharing ratios of mixes, and compare them with measured ratios
(docs/explanation/frontier.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import gcd
from pathlib import Path
from typing import Self

import numpy as np

from perseus.models.working_sets import working_sets_bytes
from perseus.peak.outcome import Outcome
from perseus.peak.predicted.ladder import Known, LadderStep, Shared, predicted
from perseus.peak.predicted.left_out import (
    Accuracy,
    best,
    errors_by_step,
    noise_of,
    of_steps_for,
)
from perseus.peak.predicted.solo import Solo
from perseus.peak.stats import UNKNOWN, Interval
from perseus.results.paired import paired_peaks
from perseus.results.records import PeakRecord
from perseus.results.repeats import (
    Dedicated,
    Quantity,
    RepeatedPeak,
    dedicated_peaks,
    each_alone,
    group,
    sharing_ratio,
)
from perseus.study.tasks.measure import MeasuredArrivals
from perseus.study.tasks.predictions import PredictionsTask
from perseus.traffic.arrivals import Arrivals

MAX_MIXES = 100
"""For each server and preset, Perseus uses at most MAX_MIXES measured mixes and predicts at most
MAX_MIXES unmeasured pairs. The limit bounds the computing time, because each prediction simulates a
queue for some hundredths of a second."""

Weights = tuple[tuple[str, int], ...]
"""A mix: the tenants with load, each with its weight."""

Mix = frozenset[tuple[str, int]]
"""A mix as a set of tenants, each with its weight. The weights have no common divisor, so that the
mixes 2 : 2 and 1 : 1 are equal."""


@dataclass(frozen=True)
class MeasuredRatio:
    """A measured mix with its sharing ratio. `known` has the data that the prediction models
    need."""

    weights: Weights
    known: Known
    ratio: Quantity


@dataclass(frozen=True)
class PredictedMix:
    """A mix on a server, and the measured mixes from which Perseus predicts its sharing ratio
    (`other_mixes`).

    `measured` is the measured sharing ratio of the mix, or None if the mix was not measured. `best`
    is the prediction model with the smallest error for `other_mixes`, or None if the evidence is
    insufficient (`left_out.why_none`).

    For a measured mix, `missed` is the number of measured mixes on this server that have no sharing
    ratio, because a tenant misses its SLA at every load. For an unmeasured pair, `missed` is the
    number of combinations of models with such a mix and without a measured sharing ratio.
    """

    server: str
    weights: Weights
    shared: Shared
    measured: Quantity | None
    other_mixes: tuple[Known, ...]
    missed: int
    best: Accuracy | None

    @property
    def mixes_known(self) -> int:
        """Number of mixes in `other_mixes` with at least two different models."""
        return sum(not each.shared.is_of_copies for each in self.other_mixes)

    def ratio(self, step: LadderStep) -> float:
        """Return the sharing ratio that the prediction model `step` predicts for this mix."""
        return predicted(step, self.shared, self.other_mixes)

    @property
    def predicted(self) -> Interval:
        """Sharing ratio that the prediction model `best` predicts, with its interval; NaN without
        such a model."""
        if self.best is None:
            return UNKNOWN
        return self.best.interval(self.ratio(self.best.step))


@dataclass(frozen=True)
class SharedServer:
    """A shared server, and the mixes that Perseus measured with one preset.

    `measured` has the mixes with a sharing ratio. `infeasible` has the mixes of different models in
    which a tenant misses its SLA at every load. `pairs` has the unmeasured 1 : 1 mixes of two
    tenants of the same scenario. `measured` and `pairs` have at most MAX_MIXES entries each.
    """

    name: str
    preset: str
    measured: tuple[MeasuredRatio, ...]
    infeasible: tuple[Shared, ...]
    pairs: tuple[tuple[Weights, Shared], ...]

    @property
    def known(self) -> tuple[Known, ...]:
        return tuple(each.known for each in self.measured)

    @property
    def one_of_each(self) -> tuple[Known, ...]:
        """One measured mix per combination of models: the mix with the most equal shares, in which
        the largest share of a tenant is smaller than in all other mixes.

        Models that differ only in their settings count as one model. The prediction errors of mixes
        of the same models are correlated, so a second mix of these models adds little evidence
        about mixes of other models.
        """
        found: dict[tuple[str, ...], Known] = {}
        for each in sorted(self.known, key=lambda known: max(known.shared.shares)):
            found.setdefault(_models(each.shared), each)
        return tuple(found.values())

    def mixes(self) -> Iterator[PredictedMix]:
        """Yield each mix of different models, measured or not, with the measured mixes from which
        Perseus predicts its sharing ratio.

        To predict a measured mix, Perseus uses all other measured mixes of the server. To predict
        an unmeasured pair of tenants, Perseus uses only one measured mix per combination of models
        (`one_of_each`).
        """
        different = [each for each in self.measured if not each.known.shared.is_of_copies]
        off, missed = errors_by_step(self.known), len(self.infeasible)
        for i, each in enumerate(different):
            other_mixes = tuple(known for known in self.known if known is not each.known)
            left = {step: np.delete(errors, i) for step, errors in off.items()}
            shared = each.known.shared
            found = best(of_steps_for(shared, other_mixes, left), noise_of(other_mixes), missed)
            yield PredictedMix(
                self.name, each.weights, shared, each.ratio, other_mixes, missed, found
            )
        other_mixes = self.one_of_each
        off, noise = errors_by_step(other_mixes) if self.pairs else {}, noise_of(other_mixes)
        known_models = {_models(each.shared) for each in other_mixes}
        missed = len({_models(each) for each in self.infeasible} - known_models)
        for weights, shared in self.pairs:
            found = best(of_steps_for(shared, other_mixes, off), noise, missed)
            yield PredictedMix(self.name, weights, shared, None, other_mixes, missed, found)


@dataclass(frozen=True)
class Predictions:
    """Predicted sharing ratios for all shared servers of a study."""

    study: str
    servers: tuple[SharedServer, ...]

    @classmethod
    def read(cls, task: PredictionsTask, searches: Sequence[Path], checks: Sequence[Path]) -> Self:
        """Return the predictions for a study.

        `searches` has the folders with the raw results of the searches. `checks` has the file
        check.json of each exported model, which states how much memory an inference accesses.
        """
        searched = group([PeakRecord.read(cell) for cell in searches], task.seed)
        peaks = list(paired_peaks(searched, task.seed).values())
        found = shared_servers(peaks, dedicated_peaks(peaks), working_sets_bytes(checks))
        return cls(task.study, tuple(found))


def shared_servers(
    peaks: Sequence[RepeatedPeak], dedicated: Dedicated, memory_bytes: Mapping[str, float]
) -> Iterator[SharedServer]:
    """Yield the servers with shared scenarios, one entry for each server and preset.

    `memory_bytes` has the working set of each model: the bytes of memory that one inference
    accesses.
    """
    lines: dict[tuple[str, str], list[RepeatedPeak]] = {}
    for peak in peaks:
        if not peak.is_dedicated:
            lines.setdefault((peak.task.server.name, peak.task.preset), []).append(peak)
    for (server, preset), of_server in lines.items():
        solos = {
            tenant: Solo.of(
                [record for record in alone.records if record.has_limit],
                memory_bytes.get(alone.task.tenants[0].model, np.nan),
            )
            for (where, tenant, with_preset), alone in dedicated.items()
            if (where, with_preset) == (server, preset) and alone.is_known
        }
        measured = tuple(islice(_measured(of_server, dedicated, solos), MAX_MIXES))
        # A run with the preset `smoke` is no evidence for another preset.
        answered = {
            mix
            for (name, with_preset), of_preset in lines.items()
            if name == server and (with_preset == preset or with_preset != "smoke")
            for mix in _answered(of_preset)
        }
        pairs = tuple(islice(_pairs(of_server, answered, solos), MAX_MIXES))
        infeasible = tuple(_infeasible(of_server, solos, {_mix(each.weights) for each in measured}))
        yield SharedServer(server, preset, measured, infeasible, pairs)


def _measured(
    lines: Sequence[RepeatedPeak], dedicated: Dedicated, solos: Mapping[str, Solo]
) -> Iterator[MeasuredRatio]:
    """Yield each measured mix once, from the first load line with this mix.

    The function leaves out further load lines with the same mix, because Perseus must not predict a
    mix from another measurement of the same mix.
    """
    found = set[Mix]()
    for peak in lines:
        ratio = sharing_ratio(peak, each_alone(peak, dedicated))
        if peak.line == "mix" and ratio.is_known and peak.verdict != Outcome.PREDICTED:
            weights = _weights(peak)
            if (mix := _mix(weights)) not in found:
                found.add(mix)
                shared = _shared(weights, solos, peak.task.arrivals)
                noise = ratio.interval().log_deviation
                yield MeasuredRatio(weights, Known(shared, ratio.value, noise), ratio)


def _infeasible(
    lines: Sequence[RepeatedPeak], solos: Mapping[str, Solo], measured: Collection[Mix]
) -> Iterator[Shared]:
    """Yield each mix of different models in which a tenant misses its SLA at every load, although
    each tenant keeps its SLA on a dedicated server.

    The function leaves out the mixes in `measured`.
    """
    found = set(measured)
    for peak in lines:
        weights = _weights(peak)
        if peak.is_infeasible and weights and all(name in solos for name, _ in weights):
            shared = _shared(weights, solos, peak.task.arrivals)
            if not shared.is_of_copies and (mix := _mix(weights)) not in found:
                found.add(mix)
                yield shared


def _answered(lines: Sequence[RepeatedPeak]) -> set[Mix]:
    """Return the mixes that need no prediction, because Perseus measured their sharing ratio, or
    found that a tenant misses its SLA at every load."""
    return {
        _mix(_weights(peak))
        for peak in lines
        if (peak.is_known or peak.is_infeasible) and peak.verdict != Outcome.PREDICTED
    }


def _pairs(
    lines: Sequence[RepeatedPeak], answered: Collection[Mix], solos: Mapping[str, Solo]
) -> Iterator[tuple[Weights, Shared]]:
    known = set(answered)
    for peak in lines:
        for pair in combinations((name for name in peak.tenants if name in solos), 2):
            weights = _loaded(pair, (1, 1))
            shared = _shared(weights, solos, peak.task.arrivals)
            if (mix := _mix(weights)) not in known and not shared.is_of_copies:
                known.add(mix)
                yield weights, shared


def _mix(weights: Weights) -> Mix:
    unit = gcd(*(weight for _, weight in weights))
    return frozenset((name, weight // unit) for name, weight in weights)


def _models(of: Shared) -> tuple[str, ...]:
    return tuple(sorted(solo.model for solo in of.solos))


def _weights(peak: RepeatedPeak) -> Weights:
    """Return the tenants with load and their weights; empty if the load line is not a mix, or if
    the weights are unknown."""
    is_mix = peak.line == "mix" and peak.weights
    return _loaded(peak.tenants, peak.weights) if is_mix else ()


def _loaded(tenants: Sequence[str], weights: Sequence[int]) -> Weights:
    return tuple((name, weight) for name, weight in zip(tenants, weights, strict=True) if weight)


def _shared(weights: Weights, solos: Mapping[str, Solo], arrivals: MeasuredArrivals) -> Shared:
    # The recorded arrival times of a trace are in a file that is no input of the tables.
    process = None if arrivals.process == "trace" else Arrivals(**arrivals.model_dump())
    return Shared.of([solos[name] for name, _ in weights], [w for _, w in weights], process)
