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
    """The limit of a load line.

    `run` has the weights of its mix, if it is one; `dedicated_rps` are requests/s by tenant, NaN
    where none was found, in whose units the line is; `blocked` says why there is no such line,
    empty if there is.
    """

    run: Run
    dedicated_rps: Mapping[str, float]
    blocked: str


def wanted_peak(cell: CellUnderTest, run: Run) -> WantedPeak:
    """The load line of the cell. The mix of a demand follows from dedicated peaks; no weights if
    one is unknown."""
    names, dedicated = cell.task.tenant_names, DedicatedPeaks.read(cell.inputs.dedicated_records)
    idle = {name for name, weight in zip(names, run.weights, strict=False) if weight == 0}
    blocked = dedicated.why_blocked(set(names) - idle)
    if run.rate_shares:
        weights = weights_along(run.rate_shares, [dedicated.rps[name] for name in names])
        run = run.of_weights(weights)
    return WantedPeak(run, dedicated.rps, blocked)
