"""Compute the remaining time and the known dedicated peaks of a run, from the plan and the results
of the run.

The workflow writes the plan (the estimated load of each cell) before the first job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perseus.host.files import whole
from perseus.study.base import Part
from perseus.study.raw_files import RECORD

NAME: Final = "run.json"


class AloneCell(Part):
    """A dedicated cell of a tenant on a server."""

    cell: str
    tenant: str
    server: str


class RunPlan(Part):
    """The cells of a run.

    `started_s` is the start time of the run on the Unix clock, in seconds. `load_s` contains the
    estimated seconds of load of each cell. `raw` is the folder with the raw results. `alone`
    contains the dedicated cells.
    """

    started_s: float
    load_s: dict[str, float]
    raw: str
    alone: tuple[AloneCell, ...]


@dataclass(frozen=True)
class KnownPeaks:
    """The dedicated peaks of a tenant in requests/s, one per measured repeat."""

    tenant: str
    server: str
    estimates_rps: tuple[float, ...] = ()
    certified_rps: tuple[float, ...] = ()


@dataclass(frozen=True)
class Overview:
    """The position of a cell in its run, and the known dedicated peaks.

    The cell is number `number` of `total` cells. `later_s` is the sum of the estimated seconds of
    load of all other cells that have not ended.
    """

    number: int
    total: int
    later_s: float
    peaks: tuple[KnownPeaks, ...]


def write_plan(logs: Path, plan: RunPlan) -> None:
    """Write the plan of a run into the folder with the logs of its study."""
    with whole(logs / NAME) as partial:
        partial.write_text(plan.model_dump_json())


def overview(logs: Path, cell: str) -> Overview | None:
    """Return the overview at the start of a cell; None if no plan contains the cell."""
    try:
        plan = RunPlan.model_validate_json((logs / NAME).read_text())
    except (OSError, ValueError):
        return None
    if cell not in plan.load_s:
        return None
    later = {name: s for name, s in plan.load_s.items() if not _has_ended(plan, name)}
    later.pop(cell, None)
    return Overview(
        number=len(plan.load_s) - len(later),
        total=len(plan.load_s),
        later_s=sum(later.values()),
        peaks=tuple(_peaks(plan)),
    )


def _has_ended(plan: RunPlan, cell: str) -> bool:
    """Return whether this run has written a record of the cell."""
    try:
        return Path(plan.raw, cell, RECORD).stat().st_mtime >= plan.started_s
    except OSError:
        return False


def _peaks(plan: RunPlan) -> Iterator[KnownPeaks]:
    for tenant, server in dict.fromkeys((each.tenant, each.server) for each in plan.alone):
        records = [
            record
            for each in plan.alone
            if (each.tenant, each.server) == (tenant, server)
            for record in _records(Path(plan.raw, each.cell, RECORD))
        ]
        yield KnownPeaks(
            tenant,
            server,
            tuple(_rates_rps(records, "estimate_scale")),
            tuple(_rates_rps(records, "certified_scale")),
        )


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    with suppress(OSError, ValueError):
        yield json.loads(path.read_text())


def _rates_rps(records: list[Mapping[str, Any]], scale: str) -> Iterator[float]:
    """Yield dedicated peaks in requests/s. In a cell with one tenant, the load factor equals the
    rate."""
    for record in records:
        if record.get(scale) is not None:
            yield float(record[scale])
