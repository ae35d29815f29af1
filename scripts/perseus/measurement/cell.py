"""Inputs, outputs and findings of one cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from perseus.measurement.monitor import MonitorFile
from perseus.measurement.progress.state import OnProgress, Progress, ignored
from perseus.measurement.raw_results import RequestsWriter
from perseus.peak.outcome import Outcome, found_limit
from perseus.serving.running_server import RunningServer
from perseus.study.raw_files import RAW
from perseus.study.tasks.measure import MeasureTask
from perseus.traffic.arrivals import stream


class BlockedError(Exception):
    """A cell needs dedicated peaks that were not found, so no server is started."""


@dataclass(frozen=True)
class Inputs:
    """The files that a cell is measured from.

    `repository` is None where the server has all models already; `references` are by tenant, of
    the others; `dedicated_records` have those of all cells that measured one of the tenants alone
    on the same server, none for a dedicated cell; `earlier_records` are of those that decide on its
    mix; `trace` is of the study's arrivals, `files` are what the experiment itself reads, in the
    order of its run's. Of a mix that may be predicted, `copies_records` are of cells that measured
    one of the models beside copies of itself, `copies_dedicated_records` of the copies alone, and
    `checks` of the models' exports.
    """

    repository: Path | None
    references: Mapping[str, Path]
    dedicated_records: Sequence[Path]
    trace: Path | None
    earlier_records: Sequence[Path] = ()
    files: Sequence[Path] = ()
    copies_records: Sequence[Path] = ()
    copies_dedicated_records: Sequence[Path] = ()
    checks: Sequence[Path] = ()


@dataclass(frozen=True)
class Outputs:
    """The files of raw results that a cell makes, in the order of RAW."""

    requests: Path
    windows: Path
    monitor: Path
    record: Path
    server_log: Path

    @classmethod
    def within(cls, folder: Path) -> Self:
        """The files of the folder that is the cell's output."""
        return cls(*(folder / name for name in RAW))


@dataclass
class RawResults:
    """Files that are written while a cell is measured."""

    requests: RequestsWriter
    monitor: MonitorFile
    errors: dict[str, dict[str, str]]
    """The first message of each kind of error, by tenant."""
    windows: list[dict[str, Any]] = field(default_factory=list)
    """The rows of windows.parquet."""
    client_realtime: bool | None = None
    """Whether the clients ran before ordinary processes (SCHED_RR); None if none ran."""

    def add_errors(self, of_tenants: Mapping[str, Mapping[str, str]]) -> None:
        for tenant, errors in of_tenants.items():
            self.errors[tenant] = {**errors, **self.errors[tenant]}


@dataclass(frozen=True)
class CellUnderTest:
    """A cell that is being measured; `say` takes progress messages, `on_progress` takes figures.

    `server_log` is that of the server started last; `attempt` counts from 1.
    """

    task: MeasureTask
    inputs: Inputs
    server_log: Path
    server_cores: Sequence[int]
    client_cores: Sequence[int]
    raw: RawResults
    say: Callable[[str], None]
    attempt: int
    on_progress: OnProgress = ignored

    def stream(self, number: int) -> np.random.Generator:
        """The random stream of a tenant, by its number."""
        return stream(self.task.seed, self.task.repeat, number)

    @property
    def own_stream(self) -> np.random.Generator:
        """The random stream that belongs to no tenant, from its start."""
        return self.stream(len(self.task.tenants))

    def progressed(
        self,
        server: RunningServer | None = None,
        seconds_left: float | None = None,
        text: str = "",
    ) -> None:
        """Report the progress after a window; `text` describes the window, `server` is running
        if given."""
        # Nobody else has the tokens of a server that wants some.
        url = server.metrics_url if server and not server.access.headers else None
        rows = self.raw.windows
        self.on_progress(Progress.of(self.task, self.attempt, rows, url, seconds_left, text))


@dataclass(frozen=True)
class Findings:
    """The keys of record.json that an experiment adds, and the window whose power is recorded.

    `watched_window` is the number of a window in windows.parquet; -1 if the cell has no such
    window.
    """

    record: Mapping[str, Any]
    watched_window: int = -1

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.record["outcome"])

    @property
    def has_limit(self) -> bool:
        """Whether a search found the limit of the server."""
        estimate, posterior = self.record.get("estimate_scale"), self.record.get("posterior_scales")
        return found_limit(self.outcome, estimate, posterior or ())
