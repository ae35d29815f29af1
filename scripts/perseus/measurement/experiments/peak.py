"""Run the experiment `peak`: search for the largest load at which every tenant keeps its SLA."""

from __future__ import annotations

from typing import Any, cast

from perseus.measurement.cell import CellUnderTest, Findings
from perseus.measurement.peaks.peak_record import without_peak
from perseus.measurement.peaks.searched_peak import searched_peak
from perseus.measurement.peaks.wanted_peak import wanted_peak
from perseus.peak.durations import expected_s, longest_s
from perseus.study.experiments.peak import Run
from perseus.study.tasks.measure import MeasureTask

SLOW_RPS = 50
"""Rate of each tenant in requests/s that the function `load_s` assumes. At this rate, no window
ends early, and the windows for an SLA at p95 have their usual length."""


def measure(cell: CellUnderTest) -> Findings:
    """Search for the peak of the cell on its load line."""
    return searched_peak(cell, wanted_peak(cell, cast(Run, cell.task.run)))


def empty_record(cell: CellUnderTest) -> dict[str, Any]:
    return without_peak(wanted_peak(cell, cast(Run, cell.task.run)), cell.task.tenant_names)


def load_s(task: MeasureTask) -> tuple[float, float]:
    """Return how long the search offers load, in seconds: usually, and at most.

    The function assumes a slow model, with the rate SLOW_RPS. For a faster model, the windows are
    shorter.
    """
    slow_rps = [SLOW_RPS] * len(task.tenants)
    sizes = task.search, task.slas, slow_rps
    return expected_s(*sizes), longest_s(*sizes)
