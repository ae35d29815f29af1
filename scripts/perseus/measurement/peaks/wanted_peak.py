"""The load line to search, which may depend on other cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perseus.measurement.cell import CellUnderTest
from perseus.measurement.peaks.dedicated_peaks import DedicatedPeaks
from perseus.peak.load_line import weights_along
from perseus.study.experiments.peak import Run


@dataclass(frozen=True)
class WantedPeak:
    """The limit that a cell searches for.

    `run` has the weights if the load line is a mix. `dedicated_rps` are the dedicated peaks by
    tenant, in requests/s, NaN if unknown; they are the units of the line. `blocked` says why there
    is no such line, and is empty if there is one.
    """

    run: Run
    dedicated_rps: Mapping[str, float]
    blocked: str


def wanted_peak(cell: CellUnderTest, run: Run) -> WantedPeak:
    """Return the load line of the cell.

    The mix of a demand follows from dedicated peaks; it has no weights if a peak is unknown.
    """
    names, dedicated = cell.task.tenant_names, DedicatedPeaks.read(cell.inputs.dedicated_records)
    idle = {name for name, weight in zip(names, run.weights, strict=False) if weight == 0}
    blocked = dedicated.why_blocked(set(names) - idle)
    if run.rate_shares:
        weights = weights_along(run.rate_shares, [dedicated.rps[name] for name in names])
        run = run.of_weights(weights)
    return WantedPeak(run, dedicated.rps, blocked)
