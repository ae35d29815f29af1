"""Table `aa`: the same capacity, measured repeatedly on restarted servers."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import ClassVar

from pydantic import Field

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.stats import mean_interval
from perseus.results.columns import CELL, cell, with_ends
from perseus.results.noise import Noise, noise
from perseus.results.records import Record, Row
from perseus.results.schema import Schema, ascending, column
from perseus.results.study_results import StudyResults
from perseus.study.experiments.aa import Run


class AaRecord(Record):
    """Throughputs of the same closed loop in an `aa` cell."""

    kind: ClassVar[str] = "aa"

    capacities_rps: tuple[tuple[float, ...], ...] = Field(
        description=(
            "per server, in the order of their starts, the throughput of all tenants together in"
            " each window that counts, requests/s; fewer servers than configured if the cell"
            " failed"
        )
    )

    @property
    def concurrency(self) -> int:
        return Run.model_validate(self.task.run).concurrency

    @property
    def noise(self) -> Noise | None:
        """The noise; None if not all servers were measured."""
        return noise(self.capacities_rps) if self.outcome == "ok" else None


RECORD = AaRecord
DESCRIPTION = (
    "One row per server that was started; columns that describe all servers have the same value in"
    " each row."
)
TITLE = "Noise of the host"
NOTE = (
    "The same closed loop on servers that were restarted (A/A): the differences are the noise of"
    " the host. Deviations are relative to the mean of all servers; 95 % intervals in brackets."
    " Two single cells that should be equal differ by more than the noise floor in 5 % of pairs."
)
SHOWN = {
    "cell": "cell",
    "restart": "restart",
    "answers/s": ("answered_rps", "low_rps", "high_rps"),
    "deviation between windows": ("between_windows", "windows_low", "windows_high"),
    "between restarts": ("between_restarts", "restarts_low", "restarts_high"),
    "noise floor": "noise_floor",
}
SCHEMA = Schema(
    [
        *CELL,
        column("concurrency", WHOLE, "requests", "requests in flight of each tenant", least=1),
        column("restart", WHOLE, "", "server, counted from 1 in the order of their starts",
               least=1),
        column("windows", WHOLE, "windows", "number of its windows that count"),
        column("answered_rps", REAL, "requests/s",
            "throughput of all tenants together, mean of its windows"),
        column("low_rps", REAL, "requests/s", "its 95 % interval over the windows, lower end",
               least=-inf),
        column("high_rps", REAL, "requests/s", "upper end"),
        column("capacity_rps", REAL, "requests/s", "mean of all servers of the cell"),
        column("between_windows", REAL, "share", "standard deviation between windows of one server,"
               " of capacity_rps", most=inf),
        column("windows_low", REAL, "share", "its 95 % interval (chi-squared), lower end",
               most=inf),
        column("windows_high", REAL, "share", "upper end", most=inf),
        column("between_restarts", REAL, "share", "standard deviation between the means of servers,"
               " of capacity_rps", most=inf),
        column("restarts_low", REAL, "share", "its 95 % interval (chi-squared), lower end",
               most=inf),
        column("restarts_high", REAL, "share", "upper end", most=inf),
        column("noise_floor", REAL, "share", "difference of two single cells that chance exceeds in"
               " 5 % of pairs (docs/explanation/noise.md)", most=inf),
        column("verdict", TEXT, "", "ok, client_limited, disturbed, throttled or failed",
               choices=("ok", "client_limited", "disturbed", "throttled", "failed")),
        column("reason", TEXT, "", "why the verdict is not ok"),
    ],
    key=("cell", "restart"),
    holds=[
        ascending("low_rps", "answered_rps", "high_rps"),
        ascending("windows_low", "between_windows", "windows_high"),
        ascending("restarts_low", "between_restarts", "restarts_high"),
    ],
)  # fmt: skip
"""Columns that describe all servers are null if the verdict is not ok."""


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.of_kind(AaRecord):
        yield from _of_cell(record)


def noise_floors(results: StudyResults) -> dict[str, float]:
    """Return the noise floor by server; the highest if several cells have one."""
    found: dict[str, float] = {}
    for record in results.of_kind(AaRecord):
        if record.noise is not None:
            name = record.task.server.name
            found[name] = max(record.noise.floor, found.get(name, 0.0))
    return found


def _of_cell(record: AaRecord) -> Iterator[Row]:
    of_cell = _of_all(record.noise) if record.noise is not None else {}
    for restart, rates_rps in enumerate(record.capacities_rps, start=1):
        yield {
            **dict.fromkeys(SCHEMA.names),
            **cell(record.task),
            "concurrency": record.concurrency,
            "restart": restart,
            "windows": len(rates_rps),
            **with_ends("answered_rps", mean_interval(rates_rps), ("low_rps", "high_rps")),
            **of_cell,
            "verdict": record.outcome,
            "reason": record.reason,
        }


def _of_all(found: Noise) -> Row:
    windows, restarts = found.between_windows, found.between_restarts
    return {
        "capacity_rps": found.capacity_rps,
        **with_ends("between_windows", windows, ("windows_low", "windows_high")),
        **with_ends("between_restarts", restarts, ("restarts_low", "restarts_high")),
        "noise_floor": found.floor,
    }
