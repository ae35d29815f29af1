"""Compute the remaining time of a run, and read the dedicated peaks found so far.

The workflow writes the plan of a run before the first job. The plan contains the estimated seconds
of load of each cell.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from perseus.host.files import whole
from perseus.study.base import Part
from perseus.study.raw_files import RECORD
from perseus.study.slots import LOCAL

NAME: Final = "run.json"


class AloneCell(Part):
    """A cell that measures the dedicated peak of a tenant on a server."""

    cell: str
    tenant: str
    server: str


class RunPlan(Part):
    """The cells of a run.

    `started_s` is the start time of the run on the Unix clock, in seconds. `load_s` contains the
    estimated seconds of load of each cell. `slots` contains the slot of each cell (`study.slots`).
    Perseus measures the cells of one slot one after another. `raw` is the folder with the raw
    results. `alone` contains the cells that measure dedicated peaks.
    """

    started_s: float
    load_s: dict[str, float]
    slots: dict[str, str]
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
    """The position of a cell in its run, and the dedicated peaks found so far.

    The cell is number `number` of `total` cells on its host. `hosts` is the number of hosts of the
    run. `later_s` is the estimated time in seconds that Perseus offers load after the cell.
    `others_end_s` is the estimated end time of the cells on other hosts, in seconds on the Unix
    clock. It is 0 if no other host has cells to measure.
    """

    number: int
    total: int
    later_s: float
    peaks: tuple[KnownPeaks, ...]
    hosts: int = 1
    others_end_s: float = 0.0

    def left_s(self, cell_s: float, now_s: float) -> float:
        """Return the estimated seconds until the end of the run.

        `cell_s` is the remaining time of the cell in seconds. `now_s` is the present time on the
        Unix clock.
        """
        return max(cell_s + self.later_s, self.others_end_s - now_s)


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
    later = [name for name in plan.load_s if name != cell and not _has_ended(plan, name)]
    own, later_s = plan.slots[cell], defaultdict[str, float](float)
    for name in later:
        later_s[plan.slots[name]] += plan.load_s[name]
    # While a cell of this machine runs, no other cell runs. Cells of remote hosts run in parallel.
    alone_s, own_s = later_s.pop(LOCAL, 0.0), later_s.pop(own, 0.0)
    others_s = max(later_s.values(), default=0.0)
    on_host = [name for name, slot in plan.slots.items() if slot == own]
    return Overview(
        number=len(on_host) - len(set(on_host).intersection(later)),
        total=len(on_host),
        later_s=alone_s + (others_s if own == LOCAL else own_s),
        peaks=tuple(_peaks(plan)),
        hosts=len(set(plan.slots.values())),
        others_end_s=time.time() + alone_s + others_s if later_s else 0.0,
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
    """Yield dedicated peaks in requests/s, from the load factors under the key `scale`. In the cell
    of a dedicated peak, a load factor is a rate in requests/s."""
    for record in records:
        if record.get(scale) is not None:
            yield float(record[scale])
