"""Run the experiment `frontier`: choose the next mix (ratio of the tenants' rates) from the results
of earlier mixes, and find the peak of this mix by search or prediction."""

from __future__ import annotations

from typing import Any, cast

from perseus.measurement.cell import CellUnderTest, Findings
from perseus.measurement.experiments.peak import load_s
from perseus.measurement.peaks.measured_mixes import measured_mixes
from perseus.measurement.peaks.peak_record import peak_record, without_peak
from perseus.measurement.peaks.predicted_mix import predicted_peak
from perseus.measurement.peaks.searched_peak import searched_peak
from perseus.measurement.peaks.wanted_peak import WantedPeak, wanted_peak
from perseus.measurement.progress.messages import describe_mix, describe_peak
from perseus.measurement.server_under_test import without_server
from perseus.peak.frontier import next_weights
from perseus.peak.load_line import load_line
from perseus.peak.outcome import Peak
from perseus.study.experiments.frontier import Run

__all__ = ["empty_record", "load_s", "measure"]


def measure(cell: CellUnderTest) -> Findings:
    """Predict the peak of the next mix, or search for the peak if no prediction is accurate
    enough."""
    wanted, run = next_mix(cell), cast(Run, cell.task.run)
    weights, within_percent = wanted.run.weights, run.predict_within_percent
    peak = predicted_peak(cell, weights, within_percent) if run.predict else None
    return searched_peak(cell, wanted) if peak is None else predicted_record(cell, wanted, peak)


def empty_record(cell: CellUnderTest) -> dict[str, Any]:
    return without_peak(next_mix(cell), cell.task.tenant_names)


def next_mix(cell: CellUnderTest) -> WantedPeak:
    """Choose the next mix from the results of the earlier mixes, and return its load line."""
    run, tenants = cast(Run, cell.task.run), len(cell.task.tenants)
    weights = next_weights(tenants, measured_mixes(cell.inputs.earlier_records))
    return wanted_peak(cell, run.of_weights(weights))


def predicted_record(cell: CellUnderTest, wanted: WantedPeak, peak: Peak) -> Findings:
    """Return the findings of a cell whose peak Perseus has predicted without a server."""
    names = cell.task.tenant_names
    line, _ = load_line(wanted.run, names, wanted.dedicated_rps, {})
    cell.say(describe_mix(cell.task, wanted.run.weights))
    cell.say(describe_peak(peak, line, names))
    return Findings(without_server(cell) | peak_record(wanted, names, peak, line))
