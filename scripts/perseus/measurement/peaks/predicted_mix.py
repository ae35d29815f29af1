"""A mix that needs no measuring: its limit as the cells before it let predict it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from pydantic import Field

from perseus.measurement.cell import CellUnderTest
from perseus.measurement.clients import arrivals
from perseus.measurement.peaks.dedicated_peaks import DedicatedRecord
from perseus.measurement.peaks.measured_mixes import MixRecord
from perseus.peak.outcome import Outcome, Peak, no_peak
from perseus.peak.predicted.ladder import Known, Shared, predicted
from perseus.peak.predicted.left_out import best, errors_by_step
from perseus.peak.predicted.solo import Solo, speed_change, usual_speed_rps
from perseus.traffic.arrivals import Arrivals

DRAWS = 200


def predicted_peak(
    cell: CellUnderTest, weights: tuple[int, ...], within_percent: float
) -> Peak | None:
    """The limit of the mix with these weights, where it is predicted well enough.

    None where it is to be measured: too few mixes were, or their limits are further off from what
    the best step of the ladder says of them than `within_percent`.
    """
    task, solos = cell.task, _solos(cell)
    if any(name not in solos for name in task.tenant_names):
        return None
    process = arrivals(task.arrivals, cell.inputs.trace)
    known = _known(cell, solos, process)
    found = best(errors_by_step(known))
    if found is None or found.half_width > within_percent / 100:
        return None
    of_all = [solos[name] for name in task.tenant_names]
    ratio = predicted(found.step, Shared.of(of_all, weights, process), known)
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


class SoloRecord(DedicatedRecord):
    """What is needed of the record.json of a cell that measured one tenant alone."""

    unloaded_p50_ms: dict[str, float | None]
    speeds_rps: dict[str, tuple[float | None, ...]]
    work_ms: dict[str, tuple[float, ...]] = Field(default_factory=dict)


def _solos(cell: CellUnderTest) -> dict[str, Solo]:
    """By tenant, those whose dedicated peak was found."""
    found: dict[str, list[SoloRecord]] = {}
    for path in cell.inputs.dedicated_records:
        record = SoloRecord.model_validate_json(path.read_bytes())
        if record.limit_scale is not None:
            found.setdefault(record.tenant, []).append(record)
    # Caches are left out: what tenants do beside copies of themselves is in other scenarios.
    return {tenant: Solo.of(repeats, np.nan) for tenant, repeats in found.items()}


def _known(cell: CellUnderTest, solos: Mapping[str, Solo], process: Arrivals) -> Sequence[Known]:
    """The mixes that were measured before this one."""
    names = cell.task.tenant_names
    ratios: dict[tuple[int, ...], list[float]] = {}
    for path in cell.inputs.earlier_records:
        record = MixRecord.model_validate_json(path.read_bytes())
        if record.limit_scale is not None and record.outcome is not Outcome.PREDICTED:
            found = _ratio(record, record.limit_scale, names, solos)
            ratios.setdefault(record.weights, []).append(found)
    of_all = [solos[name] for name in names]
    return [
        Known(Shared.of(of_all, weights, process), float(np.mean(of_repeats)))
        for weights, of_repeats in ratios.items()
    ]


def _ratio(
    record: MixRecord, scale: float, names: Sequence[str], solos: Mapping[str, Solo]
) -> float:
    """The sharing ratio, each dedicated peak at the speed that the host had in the shared cell."""
    parts = [
        weight / speed_change(usual_speed_rps([record], name), solos[name].busy_rps)
        for weight, name in zip(record.weights, names, strict=True)
    ]
    return scale * sum(parts) / sum(record.weights)
