"""Read the dedicated peaks from the records of the cells that measured the peaks."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
from pydantic import BaseModel, Field

from perseus.peak.outcome import Outcome, found_limit
from perseus.study.tasks.measure import MeasureTask


class SearchRecord(BaseModel):
    """The keys of record.json that state the limit that a search found."""

    task: MeasureTask = Field(alias="cell")
    outcome: Outcome
    estimate_scale: float | None
    posterior_scales: tuple[float, ...]

    @property
    def limit_scale(self) -> float | None:
        """Return the estimate of the limit as a load factor; None if the search did not find the
        limit of the server."""
        found = found_limit(self.outcome, self.estimate_scale, self.posterior_scales)
        return self.estimate_scale if found else None


R = TypeVar("R", bound=SearchRecord)


def read_records(kind: type[R], paths: Iterable[Path]) -> Iterator[R]:
    """Read and yield records. Each file contains one record, or a list with the records of all
    repeats."""
    for path in paths:
        plain = json.loads(path.read_bytes())
        yield from map(kind.model_validate, plain if isinstance(plain, list) else [plain])


class DedicatedRecord(SearchRecord):
    """The record of a cell with one tenant. In such a record, each load factor is the rate of the
    tenant in requests/s."""

    @property
    def tenant(self) -> str:
        (tenant,) = self.task.tenants
        return tenant.name


@dataclass(frozen=True)
class DedicatedPeaks:
    """The dedicated peak of each tenant, and the records of the cells that measured these peaks.

    `rps` contains, by tenant, the dedicated peak in requests/s: the mean of the estimates of all
    repeats that found the limit of the server. The mean is NaN if no repeat found the limit.
    """

    rps: Mapping[str, float]
    records: Sequence[DedicatedRecord]

    @classmethod
    def read(cls, paths: Sequence[Path]) -> Self:
        """Read the dedicated peaks from the files with the records of the cells."""
        records = list(read_records(DedicatedRecord, paths))
        found: dict[str, list[float]] = {}
        for record in records:
            of_tenant = found.setdefault(record.tenant, [])
            if record.limit_scale is not None:
                of_tenant.append(record.limit_scale)
        mean_rps = {name: float(np.mean(of or np.nan)) for name, of in found.items()}
        return cls(mean_rps, records)

    def why_blocked(self, needed: Collection[str]) -> str:
        """Return a text with the cells that found no dedicated peak of a tenant in `needed`.

        The text states the name and the outcome of each of these cells. The text is empty if all
        tenants in `needed` have a dedicated peak.
        """
        cells = [
            f"{record.task.cell} ({record.outcome.replace('_', ' ')})"
            for record in self.records
            if record.tenant in needed and not self.rps[record.tenant] > 0
        ]
        what = "the rates of this cell depend on dedicated peaks that these cells did not find"
        return f"{what}: {', '.join(cells)}" if cells else ""
