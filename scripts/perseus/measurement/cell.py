"""Define what the measurement of one cell reads, what it writes, and what it finds."""

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
    """Error: the cell needs the peak of a tenant on a dedicated server, and no cell has found this
    peak. Therefore Perseus starts no server for the cell."""


@dataclass(frozen=True)
class Inputs:
    """The files that the measurement of a cell reads.

    `repository` is the model repository, or None if the server already has all models. `references`
    contains the file with the reference responses of each tenant whose model the study deploys.
    `dedicated_records` contains the records of the cells that measured the dedicated peaks of the
    tenants, and is empty if this cell needs no dedicated peaks. If the study replays a trace,
    `trace` is the file with the recorded arrivals. In a frontier, `earlier_records` contains the
    records of the earlier mixes, from which Perseus chooses the mix of this cell. `files` contains
    additional files that the experiment reads, in the order of `task.run.files`. `labelled` is the
    file with the labelled images of the first tenant, or None.

    Perseus uses the last three fields only to predict a peak. `copies_records` contains the records
    of cells in which all tenants are copies of one model. `copies_dedicated_records` contains the
    records of cells with only one copy. `checks` contains the export records of the models
    (check.json).
    """

    repository: Path | None
    references: Mapping[str, Path]
    dedicated_records: Sequence[Path]
    trace: Path | None
    earlier_records: Sequence[Path] = ()
    files: Sequence[Path] = ()
    labelled: Path | None = None
    copies_records: Sequence[Path] = ()
    copies_dedicated_records: Sequence[Path] = ()
    checks: Sequence[Path] = ()


@dataclass(frozen=True)
class Outputs:
    """The files of raw results that a cell writes, in the order of `study.raw_files.RAW`."""

    requests: Path
    windows: Path
    monitor: Path
    record: Path
    server_log: Path

    @classmethod
    def within(cls, folder: Path) -> Self:
        """Return the files of raw results in the output folder of the cell."""
        return cls(*(folder / name for name in RAW))


@dataclass
class RawResults:
    """The files and tables that Perseus writes while it measures a cell."""

    requests: RequestsWriter
    monitor: MonitorFile
    errors: dict[str, dict[str, str]]
    """For each tenant, the first message of each kind of error."""
    windows: list[dict[str, Any]] = field(default_factory=list)
    """Rows of windows.parquet."""
    client_realtime: bool | None = None
    """Whether the clients ran with a higher priority than ordinary processes (SCHED_RR); None if no
    client ran."""

    def add_errors(self, of_tenants: Mapping[str, Mapping[str, str]]) -> None:
        for tenant, errors in of_tenants.items():
            self.errors[tenant] = {**errors, **self.errors[tenant]}


@dataclass(frozen=True)
class CellUnderTest:
    """A cell during its measurement.

    The function `say` gets messages about the progress, and `on_progress` gets the progress as
    numbers. `server_log` is the log file of the server that Perseus started last. `attempt` is the
    number of the attempt to measure the cell, counted from 1.
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
        """Return a new random generator for tenant `number`. In all calls with the same `number`,
        the generators yield the same random numbers."""
        return stream(self.task.seed, self.task.repeat, number)

    @property
    def own_stream(self) -> np.random.Generator:
        """Return a random generator that no tenant of the cell uses."""
        return self.stream(len(self.task.tenants))

    def progressed(
        self,
        server: RunningServer | None = None,
        seconds_left: float | None = None,
        text: str = "",
    ) -> None:
        """Report the progress of the measurement.

        `server` is the running server, or None if no server runs. After a window, `text` describes
        the window.
        """
        url = self._metrics_url_for_others(server) if server else None
        rows = self.raw.windows
        self.on_progress(Progress.of(self.task, self.attempt, rows, url, seconds_left, text))

    def _metrics_url_for_others(self, server: RunningServer) -> str | None:
        """Return the URL of a server's metrics; None if other programs cannot read the metrics.

        Other programs have neither the tokens nor the certificates of the study.
        """
        remote = self.task.server.remote
        has_pem_file = remote is not None and remote.tls not in ("none", "system")
        needs_pem_file = has_pem_file and server.metrics_url.startswith("https:")
        return None if server.access.headers or needs_pem_file else server.metrics_url


@dataclass(frozen=True)
class Findings:
    """The results of an experiment.

    `record` contains the keys that the experiment adds to record.json. Perseus records the
    electrical power during the window `watched_window` (its number in windows.parquet, or -1 for no
    window).
    """

    record: Mapping[str, Any]
    watched_window: int = -1

    @property
    def outcome(self) -> Outcome:
        return Outcome(self.record["outcome"])

    @property
    def has_limit(self) -> bool:
        """Return whether a search found the limit of the server."""
        estimate, posterior = self.record.get("estimate_scale"), self.record.get("posterior_scales")
        return found_limit(self.outcome, estimate, posterior or ())
