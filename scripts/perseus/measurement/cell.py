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

    `repository` is None if the server already has all models. `references` are the reference
    responses of the deployed models, by tenant. `dedicated_records` are the records of all cells
    that measured one of the tenants alone on the same server; none for a dedicated cell.
    `earlier_records` are the records of the cells that determine its mix. `trace` is the trace of
    the study's arrivals. `files` are the files that the experiment itself reads, in the order of
    its run. For a mix that may be predicted, `copies_records` are the records of cells with several
    copies of one of the models, `copies_dedicated_records` those of a copy alone, and `checks`
    those of the models' exports.
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
        """Return the files in the folder that is the cell's output."""
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
    """Whether the clients ran before ordinary processes (SCHED_RR); None if no client ran."""

    def add_errors(self, of_tenants: Mapping[str, Mapping[str, str]]) -> None:
        for tenant, errors in of_tenants.items():
            self.errors[tenant] = {**errors, **self.errors[tenant]}


@dataclass(frozen=True)
class CellUnderTest:
    """A cell that is being measured.

    `say` takes progress messages, `on_progress` takes numbers. `server_log` is the log of the
    latest server; `attempt` counts from 1.
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
        # Readers of the progress do not have the tokens of a server that requires some.
        url = server.metrics_url if server and not server.access.headers else None
        rows = self.raw.windows
        self.on_progress(Progress.of(self.task, self.attempt, rows, url, seconds_left, text))


@dataclass(frozen=True)
class Findings:
    """The keys of record.json that an experiment adds, and the window whose power is recorded.

    `watched_window` is the number of that window in windows.parquet; -1 if the cell has no such
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
