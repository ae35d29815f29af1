"""Predict the limit of a mix from earlier cells, so that Perseus need not measure the mix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field

from perseus.measurement.cell import CellUnderTest
from perseus.measurement.clients import arrivals
from perseus.measurement.peaks.dedicated_peaks import (
    DedicatedRecord,
    SearchRecord,
    read_records,
)
from perseus.measurement.peaks.measured_mixes import MixRecord
from perseus.models.working_sets import working_sets_bytes
from perseus.peak import search
from perseus.peak.between_repeats import DRAWS, limit_draws
from perseus.peak.outcome import Outcome, Peak, no_peak
from perseus.peak.predicted.ladder import Known, Shared, predicted
from perseus.peak.predicted.left_out import (
    Accuracy,
    best,
    errors_by_step,
    noise_of,
    of_steps_for,
    why_none,
)
from perseus.peak.predicted.solo import Solo, limit_change, speed_change, usual_speed_rps
from perseus.peak.stats import TAIL, Floats, Interval
from perseus.traffic.arrivals import Arrivals


def predicted_peak(
    cell: CellUnderTest, weights: tuple[int, ...], within_percent: float | None
) -> Peak | None:
    """Return the predicted peak of a mix; None if Perseus must measure the mix.

    `weights` contains the ratio of the rates in the mix. Perseus must measure the mix in each of
    these cases:

    - A dedicated peak is unknown.
    - No prediction model can predict the mix, for example because earlier cells measured too few
      mixes.
    - The error of the best prediction model exceeds `within_percent` percent. If `within_percent`
      is None, the error may be as large as the difference between two measurements of the same mix.
    """
    task, alone = cell.task, _alone(cell)
    memory_bytes = working_sets_bytes(cell.inputs.checks)
    solos = {tenant: _solo(repeats, memory_bytes) for tenant, repeats in alone.items()}
    if any(name not in solos for name in task.tenant_names):
        return None
    process = arrivals(task.arrivals, task.trace, cell.inputs.trace)
    mixes = list(_mixes(cell, solos, process))
    rng = np.random.default_rng(0)
    found_alone = {tenant: _relative_draws(repeats, rng) for tenant, repeats in alone.items()}
    known = [_known(mix, solos, found_alone, rng) for mix in mixes if mix.repeats]
    missed = sum(mix.is_infeasible for mix in mixes)
    shared = Shared.of([solos[name] for name in task.tenant_names], weights, process)
    errors, noise = of_steps_for(shared, known, errors_by_step(known)), noise_of(known)
    found = best(errors, noise, missed)
    if found is None or not _is_enough(found, within_percent):
        different = sum(not each.shared.is_of_copies for each in known)
        none = why_none("earlier mixes", different, noise, missed)
        cell.say(
            f"Perseus measures this mix: {_how_far_off(found, within_percent) if found else none}"
        )
        return None
    ratio = predicted(found.step, shared, known)
    levels = cell.own_stream.permutation(search.DRAWS) + 0.5
    reason = (
        f"not measured: prediction model {found.step} predicts the peak of this mix with an error"
        f" of at most {found.half_width:.0%} (confidence 90 %), from {found.n} measured mixes"
    )
    return replace(
        no_peak(Outcome.PREDICTED, reason),
        estimate=found.interval(ratio).value,
        posterior=found.draws(ratio, levels / search.DRAWS),
    )


def _is_enough(found: Accuracy, within_percent: float | None) -> bool:
    if within_percent is None:
        return found.is_as_good_as_measuring
    return found.half_width <= within_percent / 100


def _how_far_off(found: Accuracy, within_percent: float | None) -> str:
    asked = "the error of a measurement" if within_percent is None else f"{within_percent:g}%"
    return (
        f"the error of prediction model {found.step} is up to {found.half_width:.0%}, and"
        f" Perseus accepts at most {asked}"
    )


class SoloRecord(DedicatedRecord):
    """The keys that this module reads from the record.json of a cell with one tenant."""

    unloaded_p50_ms: dict[str, float | None]
    speeds_rps: dict[str, tuple[float | None, ...]]
    work_ms: dict[str, tuple[float, ...]] = Field(default_factory=dict)


def _alone(cell: CellUnderTest) -> dict[str, list[SoloRecord]]:
    """Return, by tenant, the records of the repeats that found the tenant's dedicated peak.

    The result also contains the tenants of the mixes in which all tenants are copies of one model.
    """
    paths = (*cell.inputs.dedicated_records, *cell.inputs.copies_dedicated_records)
    found: dict[str, list[SoloRecord]] = {}
    for record in read_records(SoloRecord, paths):
        if record.limit_scale is not None:
            found.setdefault(record.tenant, []).append(record)
    return found


def _solo(repeats: Sequence[SoloRecord], memory_bytes: Mapping[str, float]) -> Solo:
    """Return the results of the cells that measured a tenant alone.

    `memory_bytes` contains, by model, the working set of an inference: the bytes of memory that one
    inference accesses.
    """
    (tenant,) = repeats[0].task.tenants
    return Solo.of(repeats, memory_bytes.get(tenant.model, np.nan))


@dataclass(frozen=True)
class EarlierMix:
    """A mix that earlier cells measured, and the repeats that found the limit of this mix."""

    shared: Shared
    weights: tuple[int, ...]
    repeats: tuple[MixRecord, ...]
    outcomes: frozenset[Outcome]

    @property
    def is_infeasible(self) -> bool:
        """Return whether the mix has different models, and misses an SLA at every load."""
        keeps_none = not self.repeats and Outcome.INFEASIBLE in self.outcomes
        return keeps_none and not self.shared.is_of_copies


def _mixes(
    cell: CellUnderTest, solos: Mapping[str, Solo], process: Arrivals
) -> Iterator[EarlierMix]:
    """Yield the mixes of this scenario, and the mixes of copies of one model, that earlier cells
    have measured.

    The function omits a mix if the dedicated peak of one of its tenants is unknown.
    """
    of_mix: dict[tuple[str, tuple[int, ...]], list[MixRecord]] = {}
    for path in (*cell.inputs.earlier_records, *cell.inputs.copies_records):
        record = MixRecord.model_validate_json(path.read_bytes())
        is_known = all(name in solos for name in record.task.tenant_names)
        if is_known and record.outcome is not Outcome.PREDICTED:
            of_mix.setdefault((record.task.scenario, record.weights), []).append(record)
    for (_, weights), records in of_mix.items():
        names = records[0].task.tenant_names
        yield EarlierMix(
            Shared.of([solos[name] for name in names], weights, process),
            weights,
            tuple(each for each in records if each.limit_scale is not None),
            frozenset(each.outcome for each in records),
        )


def _known(
    mix: EarlierMix,
    solos: Mapping[str, Solo],
    found_alone: Mapping[str, Floats],
    rng: np.random.Generator,
) -> Known:
    """Return the measured sharing ratio of a mix, and the uncertainty of this ratio.

    `found_alone` contains, by tenant, the relative draws (`_relative_draws`) of the dedicated peak.
    """
    names = mix.repeats[0].task.tenant_names
    ratio = float(np.mean([_ratio(each, names, solos) for each in mix.repeats]))
    shares = np.array(mix.weights) / sum(mix.weights)
    parts = sum(share / found_alone[name] for share, name in zip(shares, names, strict=True))
    low, high = np.quantile(_relative_draws(mix.repeats, rng) * parts, [TAIL, 1 - TAIL])
    return Known(mix.shared, ratio, Interval(1.0, float(low), float(high)).log_deviation)


def _relative_draws(repeats: Sequence[SearchRecord], rng: np.random.Generator) -> Floats:
    """Return draws that show the uncertainty of the limit, relative to its estimate; shape
    (DRAWS,).

    Each draw is the mean of one draw per repeat, divided by the mean estimate of the repeats.
    """
    posteriors = [np.array(each.posterior_scales) for each in repeats]
    found = limit_draws(posteriors, rng, DRAWS).mean(axis=1)
    limits = np.array([each.limit_scale for each in repeats], float)
    multiples: Floats = found / limits.mean()
    return multiples


def _ratio(record: MixRecord, names: Sequence[str], solos: Mapping[str, Solo]) -> float:
    """Return the sharing ratio of one repeat of a mix.

    The host's speed may have changed since the measurement of a dedicated peak. Therefore the
    function corrects the dedicated peaks for this change.
    """
    assert record.limit_scale is not None
    changes = [
        speed_change(usual_speed_rps([record], name), solos[name].busy_rps) for name in names
    ]
    parts = [
        weight / limit_change(change, solos[name].utilisation)
        for weight, change, name in zip(record.weights, changes, names, strict=True)
    ]
    return record.limit_scale * sum(parts) / sum(record.weights)
