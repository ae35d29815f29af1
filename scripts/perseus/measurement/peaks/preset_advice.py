"""Advise which preset can certify a rate, if the preset of the study cannot."""

from __future__ import annotations

from dataclasses import replace

from perseus.measurement.cell import CellUnderTest
from perseus.peak.certifiable import too_slow
from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import Outcome, Peak


def with_advice(peak: Peak, cell: CellUnderTest, line: LoadLine) -> Peak:
    """Return the peak. If the preset made a certified rate impossible, add advice on another preset
    to `peak.reason`."""
    task, advice = cell.task, ""
    if peak.outcome is Outcome.UNCERTIFIED:
        limits_rps = line.rates_rps(peak.estimate)
        advice = too_slow(task.preset, task.slas, limits_rps, task.tenant_names)
    return replace(peak, reason=f"{peak.reason}; {advice}") if advice else peak
