"""The dedicated peaks that shared load lines are made from, as other cells have found them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, Field

from perseus.peak.outcome import Outcome, found_limit
from perseus.study.tasks.measure import MeasureTask


class SearchRecord(BaseModel):
    """What is needed of the record.json of a cell that searched a peak."""

    task: MeasureTask = Field(alias="cell")
    outcome: Outcome
    estimate_scale: float | None
    posterior_scales: tuple[float, ...]

    @property
    def limit_scale(self) -> float | None:
        """The estimate, where a limit of the server was found."""
        found = found_limit(self.outcome, self.estimate_scale, self.posterior_scales)
        return self.estimate_scale if found else None


class DedicatedRecord(SearchRecord):
    """That of a cell that measured one tenant alone: the scale of its load line is the rate."""

    @property
    def tenant(self) -> str:
        (tenant,) = self.task.tenants
        return tenant.name


def dedicated_peaks(records: Sequence[Path]) -> dict[str, float]:
    """Each tenant's dedicated peak in requests/s: the mean estimate of its repeats.

    Of those that found a limit of the server; NaN when none did.
    """
    found: dict[str, list[float]] = {}
    for path in records:
        record = DedicatedRecord.model_validate_json(path.read_bytes())
        of_tenant = found.setdefault(record.tenant, [])
        if record.limit_scale is not None:
            of_tenant.append(record.limit_scale)
    return {name: float(np.mean(peaks)) if peaks else float("nan") for name, peaks in found.items()}


def why_blocked(records: Sequence[Path], dedicated_rps: Mapping[str, float]) -> str:
    """Which cells left one of these tenants without its peak, and how they ended; empty if none
    did."""
    read = [DedicatedRecord.model_validate_json(path.read_bytes()) for path in records]
    cells = [
        f"{record.task.cell} ({record.outcome.replace('_', ' ')})"
        for record in read
        if record.tenant in dedicated_rps and not dedicated_rps[record.tenant] > 0
    ]
    what = "its rates are shares of dedicated peaks that were not found"
    return f"{what}: {', '.join(cells)}" if cells else ""
