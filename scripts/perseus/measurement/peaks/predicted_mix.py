"""A mix that needs no measuring: its limit as the cells before it let predict it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

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
from perseus.peak.outcome import Outcome, Peak, no_peak
from perseus.peak.predicted.ladder import Known, Shared, predicted
from perseus.peak.predicted.left_out import Accuracy, best, errors_by_step, noise_of, of_steps_for
from perseus.peak.predicted.solo import Solo, speed_change, usual_speed_rps
from perseus.traffic.arrivals import Arrivals

DRAWS = 200


def predicted_peak(
    cell: CellUnderTest, weights: tuple[int, ...], within_percent: float | None
) -> Peak | None:
    """The limit of the mix with these weights, where it is predicted well enough.

    None where it is to be measured: too few mixes were, or their limits are further off from what
    the best step of the ladder says of them than `within_percent`, or, where that is None, than a
    second measurement would be.
    """
    task, alone = cell.task, _alone(cell)
    memory_bytes = working_sets_bytes(cell.inputs.checks)
    solos = {tenant: _solo(repeats, memory_bytes) for tenant, repeats in alone.items()}
    if any(name not in solos for name in task.tenant_names):
        return None
    process = arrivals(task.arrivals, cell.inputs.trace)
    noise = {tenant: _log_variance(repeats) for tenant, repeats in alone.items()}
    known = list(_known(cell, solos, noise, process))
    shared = Shared.of([solos[name] for name in task.tenant_names], weights, process)
    found = best(of_steps_for(shared, known, errors_by_step(known)), noise_of(known))
    if found is None or not _is_enough(found, within_percent):
        if found is not None:
            cell.say(f"to be measured: {found.step} predicts it within {found.half_width:.0%}")
        return None
    ratio = predicted(found.step, shared, known)
    levels = cell.own_stream.permutation(DRAWS) + 0.5
    reason = (
        f"not measured: {found.step} predicts it within {found.half_width:.0%}, by the"
        f" {found.n} mixes that were"
    )
    return replace(
        no_peak(Outcome.PREDICTED, reason),
        estimate=found.interval(ratio).value,
        posterior=found.draws(ratio, levels / DRAWS),
    )


def _is_enough(found: Accuracy, within_percent: float | None) -> bool:
    if within_percent is None:
        return found.is_as_good_as_measuring
    return found.half_width <= within_percent / 100


class SoloRecord(DedicatedRecord):
    """What is needed of the record.json of a cell that measured one tenant alone."""

    unloaded_p50_ms: dict[str, float | None]
    speeds_rps: dict[str, tuple[float | None, ...]]
    work_ms: dict[str, tuple[float, ...]] = Field(default_factory=dict)


def _alone(cell: CellUnderTest) -> dict[str, list[SoloRecord]]:
    """By tenant, its own and copies of them, the repeats that found its dedicated peak."""
    paths = (*cell.inputs.dedicated_records, *cell.inputs.copies_dedicated_records)
    found: dict[str, list[SoloRecord]] = {}
    for record in read_records(SoloRecord, paths):
        if record.limit_scale is not None:
            found.setdefault(record.tenant, []).append(record)
    return found


def _solo(repeats: Sequence[SoloRecord], memory_bytes: Mapping[str, float]) -> Solo:
    """`memory_bytes` is by model."""
    (tenant,) = repeats[0].task.tenants
    return Solo.of(repeats, memory_bytes.get(tenant.model, np.nan))


def _known(
    cell: CellUnderTest,
    solos: Mapping[str, Solo],
    noise: Mapping[str, float],
    process: Arrivals,
) -> Iterator[Known]:
    """The mixes of its scenario and of copies that were measured before this one; `noise` is the
    variance of the logarithm of each tenant's dedicated peak."""
    of_mix: dict[tuple[str, tuple[int, ...]], list[MixRecord]] = {}
    for path in (*cell.inputs.earlier_records, *cell.inputs.copies_records):
        record = MixRecord.model_validate_json(path.read_bytes())
        is_measured = record.limit_scale is not None and record.outcome is not Outcome.PREDICTED
        if is_measured and all(name in solos for name in record.task.tenant_names):
            of_mix.setdefault((record.task.scenario, record.weights), []).append(record)
    for (_, weights), repeats in of_mix.items():
        names = repeats[0].task.tenant_names
        shares = np.array(weights) / sum(weights)
        of_each = np.array([noise[name] for name in names])
        ratio = float(np.mean([_ratio(each, names, solos) for each in repeats]))
        deviation = float(np.sqrt(_log_variance(repeats) + (shares**2 * of_each).sum()))
        yield Known(Shared.of([solos[name] for name in names], weights, process), ratio, deviation)


def _log_variance(repeats: Sequence[SearchRecord]) -> float:
    """Of the logarithm of their mean limit, by their posteriors."""
    of_each = [np.var(np.log(each.posterior_scales)) for each in repeats]
    return float(np.mean(of_each) / len(repeats))


def _ratio(record: MixRecord, names: Sequence[str], solos: Mapping[str, Solo]) -> float:
    """The sharing ratio, each dedicated peak at the speed that the host had in the shared cell."""
    assert record.limit_scale is not None
    parts = [
        weight / speed_change(usual_speed_rps([record], name), solos[name].busy_rps)
        for weight, name in zip(record.weights, names, strict=True)
    ]
    return record.limit_scale * sum(parts) / sum(record.weights)
