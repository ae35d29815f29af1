"""Determine the load line of a cell. The load line may depend on dedicated peaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from perseus.measurement.cell import CellUnderTest
from perseus.measurement.peaks.dedicated_peaks import DedicatedPeaks
from perseus.peak.load_line import weights_along
from perseus.study.experiments.peak import Run


@dataclass(frozen=True)
class WantedPeak:
    """The load line along which Perseus searches for the limit of the server.

    If the load line belongs to a mix, `run` contains the weights of the mix. `dedicated_rps`
    contains, by tenant, the dedicated peaks on which the load line depends, in requests/s. Unknown
    dedicated peaks are NaN. If the load line needs an unknown dedicated peak, Perseus cannot
    measure the cell. `blocked` then states the reason, and is empty otherwise.
    """

    run: Run
    dedicated_rps: Mapping[str, float]
    blocked: str


def wanted_peak(cell: CellUnderTest, run: Run) -> WantedPeak:
    """Return the load line of the cell.

    If `run` contains the tenants' shares of a demand (`rate_shares`), the function computes the
    weights of the mix from these shares and the dedicated peaks. With an unknown dedicated peak,
    the computed mix has no weights.
    """
    names, dedicated = cell.task.tenant_names, DedicatedPeaks.read(cell.inputs.dedicated_records)
    idle = {name for name, weight in zip(names, run.weights, strict=False) if weight == 0}
    blocked = dedicated.why_blocked(set(names) - idle)
    if run.rate_shares:
        weights = weights_along(run.rate_shares, [dedicated.rps[name] for name in names])
        run = run.of_weights(weights)
    return WantedPeak(run, dedicated.rps, blocked)
