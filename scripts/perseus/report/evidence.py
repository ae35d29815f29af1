"""Collect the cells (single measurements) and windows that support the numbers of the page, with
anchors for links."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from perseus.peak.verdict import NO_SLA, Verdict
from perseus.report.charts import CLOSED_LOOP, UTILISATION
from perseus.report.numbers import significant
from perseus.report.samples import samples
from perseus.report.shown_tables import Entry, plain_words, share
from perseus.results.records import PeakRecord, Record
from perseus.study.experiments.peak import Run as PeakRun

MAX_CELLS: Final = 200
"""At most this many cells have a section on the page. The raw results of all cells are in
results/<study>/raw."""

MAX_SAMPLES: Final = 6000
"""The page contains at most this many monitor samples."""

MAX_WINDOWS: Final = 1500
"""The page shows at most this many windows of all cells together. If there are more windows, the
page shows only two windows of each cell: the window that certified the rate, and the window that
failed at the first failing rate."""


@dataclass(frozen=True)
class CellEvidence:
    """Section of the page for one cell.

    `facts` maps names to short texts, for example on the settings of the cell. `windows` has the id
    and the table row of each shown window. `all_windows` is the number of windows of the cell.
    """

    id: str
    name: str
    outcome: str
    facts: Mapping[str, str]
    windows: Sequence[tuple[str, Sequence[Entry]]]
    all_windows: int


WINDOW_COLUMNS: Final = (
    "window",
    "phase",
    "offered (requests/s)",
    "verdict",
    "late requests of the worst tenant",
    "reason",
)


@dataclass(frozen=True)
class PageEvidence:
    """Evidence to which the page links. `records` maps the name of each cell to its record.

    For each cell with a section on the page, `windows` contains the rows of windows.parquet, and
    `samples` contains the monitor samples.
    """

    records: Mapping[str, Record]
    windows: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    samples: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def study(self) -> str:
        return next(iter(self.records.values())).task.study

    @cached_property
    def shown(self) -> Mapping[str, Record]:
        """Cells that have a section on the page."""
        return dict(islice(self.records.items(), MAX_CELLS))

    def link(self, cell: str) -> str:
        """Return the anchor of the section of a cell; "" if the cell has no section."""
        return f"cell-{cell}" if cell in self.shown else ""

    def certified_link(self, cell: str) -> str:
        """Return the anchor of the window that certified the rate of a cell. If the page does not
        have this window, return the anchor of the cell."""
        return self._window_link(cell, self.certified(cell))

    def failing_link(self, cell: str) -> str:
        """Return the anchor of the window that failed at the first failing rate of a cell. If the
        page does not have this window, return the anchor of the cell."""
        return self._window_link(cell, self.failing(cell))

    def _window_link(self, cell: str, number: int | None) -> str:
        frame = self.windows.get(cell)
        if number is None or frame is None or number not in set(frame["window"]):
            return self.link(cell)
        return f"cell-{cell}.w{number}"

    @cached_property
    def _lines(self) -> Mapping[tuple[str, str], Sequence[Record]]:
        found: dict[tuple[str, str], list[Record]] = {}
        for record in self.records.values():
            found.setdefault((record.task.scenario, record.task.run.name), []).append(record)
        return found

    def cells_of(self, scenario: str, load_line: str) -> Sequence[Record]:
        """Return the cells of all repeats of a load line."""
        return self._lines.get((scenario, load_line), ())

    def searches_of(self, scenario: str, load_line: str) -> Sequence[PeakRecord]:
        """Return the records of those repeats of a load line that have a section on the page."""
        return [r for r in self.cells_of(scenario, load_line) if isinstance(r, PeakRecord)]

    def certified(self, cell: str) -> int | None:
        """Return the number of the last window that certified the rate of a search; None without a
        certified rate."""
        record = self.records[cell]
        if not isinstance(record, PeakRecord) or record.certified_window < 0:
            return None
        return record.certified_window

    def failing(self, cell: str) -> int | None:
        """Return the number of the window that failed at the first failing rate of a search; None
        if no window failed at this rate."""
        record, frame = self.records[cell], self.windows.get(cell)
        if not isinstance(record, PeakRecord) or frame is None or frame.empty:
            return None
        at = np.isclose(frame["scale"], record.first_failing_scale, rtol=1e-9)
        failed = frame[at & (frame["window_verdict"] == "fail")]
        return None if failed.empty else int(failed["window"].iloc[0])

    def sections(self) -> Iterator[CellEvidence]:
        """Yield one section for each cell that the page shows."""
        total = sum(frame["window"].nunique() for frame in self.windows.values())
        for name, record in self.shown.items():
            frame = self.windows.get(name, pd.DataFrame(columns=["window"]))
            decisive = {self.certified(name), self.failing(name)}
            kept = frame if total <= MAX_WINDOWS else frame[frame["window"].isin(decisive)]
            yield CellEvidence(
                id=f"cell-{name}",
                name=name,
                outcome=plain_words(record.outcome),
                facts=_facts(record),
                windows=[
                    (f"cell-{name}.w{number}", _window(int(str(number)), tenants))
                    for number, tenants in kept.groupby("window")
                ],
                all_windows=frame["window"].nunique(),
            )


def read_records(files: Sequence[Path]) -> list[Record]:
    """Return the records of all cells. If a cell is a search and has a section on the page, its
    record is a PeakRecord, which has the results of the search."""
    records = [Record.read(file.parent) for file in files]
    return [
        PeakRecord.read(record.folder)
        if i < MAX_CELLS and isinstance(record.task.run, PeakRun)
        else record
        for i, record in enumerate(records)
    ]


def read_windows(records: Sequence[Record]) -> dict[str, pd.DataFrame]:
    """Return the windows of the first MAX_CELLS cells. If Perseus measured a cell several times,
    the windows are from the attempt that the record of the cell describes."""
    found = {each.task.cell: pd.DataFrame(each.windows()) for each in records[:MAX_CELLS]}
    return {
        cell: _without_sla(frame.assign(cell=cell)) for cell, frame in found.items() if len(frame)
    }


def _without_sla(windows: pd.DataFrame) -> pd.DataFrame:
    """Return the windows of a cell. A window in a closed loop has no SLA, so CLOSED_LOOP replaces
    its verdict. For example, saturation probes are closed loops."""
    closed = (windows["reason"] == NO_SLA) & (windows["window_verdict"] == Verdict.UNDECIDED)
    values = {"window_verdict": CLOSED_LOOP, "reason": "", "exceedance": np.nan}
    return windows.assign(**{name: windows[name].mask(closed, of) for name, of in values.items()})


def read_samples(records: Sequence[Record]) -> dict[str, pd.DataFrame]:
    """Return the samples of the utilisation in the first MAX_CELLS cells. If there are more than
    MAX_SAMPLES samples in total, each returned sample is a mean of consecutive samples."""
    busy: dict[str, pd.DataFrame] = {}
    for record in records[:MAX_CELLS]:
        if (record.folder / "monitor.parquet").exists():
            frames = [f for f in samples(record.folder) if f["quantity"].iloc[0] in UTILISATION]
            if frames:
                busy[record.task.cell] = pd.concat(frames)
    together = math.ceil(sum(len(frame) for frame in busy.values()) / MAX_SAMPLES)
    return {cell: _means(frame, together) for cell, frame in busy.items()}


def _means(frame: pd.DataFrame, together: int) -> pd.DataFrame:
    """Replace each group of `together` consecutive samples of a metric by the mean of the group."""
    named = ["cell", "quantity", "metric", "who"]
    group = frame.groupby(named, sort=False).cumcount() // together
    return frame.groupby([*named, group.rename("group")], sort=False).mean().reset_index()


def _facts(record: Record) -> dict[str, str]:
    """Return short texts on the settings, the outcome and the server of a cell, by name."""
    task = record.task
    began = datetime.fromtimestamp(record.started.unix_ns / 1e9, UTC)
    lasted_s = (record.finished_monotonic_ns - record.started.monotonic_ns) / 1e9
    run = task.run.model_dump(mode="json", exclude={"name"}, exclude_none=True).items()
    asked = ", ".join(f"{key} {_value_text(value)}" for key, value in run if value not in ([], ""))
    unloaded = record.unloaded_p50_ms.items()
    facts = {
        "settings": f"{asked}; preset {task.preset}, repeat {task.repeat}, seed {task.seed}",
        "verdict": plain_words(record.outcome) + (f": {record.reason}" if record.reason else ""),
        "measured": f"{began:%Y-%m-%d %H:%M} UTC, for {lasted_s:.0f} s"
        f" ({record.measured_s:.0f} s in windows, with {record.requests} requests); attempt"
        f" {record.attempt}",
        "recorded arrivals": "; ".join(record.traces.values()),
        "server": _server(record),
        "latency without load": ", ".join(f"{name} {significant(ms)} ms" for name, ms in unloaded),
        "files": f"results/{task.study}/raw/{task.cell}/",
    }
    return {name: text for name, text in facts.items() if text}


def _server(record: Record) -> str:
    name = record.task.server.name
    if record.triton_version is None:
        return f"{name} (not started)"
    return (
        f"{name}, {record.software} {record.triton_version}, ready after"
        f" {significant(record.startup_s)} s, round trip {significant(record.round_trip_p50_ms)} ms"
    )


def _value_text(value: object) -> str:
    return " : ".join(map(str, value)) if isinstance(value, list) else str(value)


def _window(number: int, tenants: pd.DataFrame) -> list[Entry]:
    """Return the table row for a window, with the total rate and the largest exceedance of all
    tenants. `tenants` has one row of windows.parquet for each tenant."""
    worst = tenants["exceedance"].max()
    reasons = tenants[tenants["verdict"] != "pass"]["reason"].dropna()
    first = tenants.iloc[0]
    return [
        Entry(str(number)),
        Entry(plain_words(first["phase"])),
        Entry(significant(float(tenants["offered_rps"].sum()))),
        Entry(plain_words(first["window_verdict"])),
        Entry(share(None if pd.isna(worst) else float(worst))),
        Entry("; ".join(dict.fromkeys(reason for reason in reasons if reason))),
    ]
