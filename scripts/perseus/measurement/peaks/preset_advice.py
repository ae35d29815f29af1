"""Which preset would certify what the one that was asked for did not."""

from __future__ import annotations

from dataclasses import replace

from perseus.measurement.cell import CellUnderTest
from perseus.peak.certifiable import too_slow
from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import Outcome, Peak


def with_advice(peak: Peak, cell: CellUnderTest, line: LoadLine) -> Peak:
    """The peak; where the preset was what kept it from more, its reason says so."""
    task, advice = cell.task, ""
    if peak.outcome is Outcome.UNCERTIFIED:
        limits_rps = line.rates_rps(peak.estimate)
        advice = too_slow(task.preset, task.slas, limits_rps, task.tenant_names)
    return replace(peak, reason=f"{peak.reason}; {advice}") if advice else peak
