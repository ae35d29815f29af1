"""Make the table `aa`: the throughput of the same closed loop after each start of a server."""

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
    """Record of an A/A test, which runs the same closed loop after each of several starts of a
    server."""

    kind: ClassVar[str] = "aa"

    capacities_rps: tuple[tuple[float, ...], ...] = Field(
        description=(
            "one list per start of the server, in the order of the starts. A list has the total"
            " throughput of all tenants in each window after this start, without the first window,"
            " requests/s. If the outcome is not ok, lists of later starts may be missing."
        )
    )

    @property
    def concurrency(self) -> int:
        return Run.model_validate(self.task.run).concurrency

    @property
    def noise(self) -> Noise | None:
        """Variation of the throughput between windows and between starts of the server; None unless
        the outcome of the cell is ok."""
        return noise(self.capacities_rps) if self.outcome == "ok" else None


RECORD = AaRecord
DESCRIPTION = (
    "One row per start of the server in a cell. Columns that describe all starts of a cell have the"
    " same value in all rows of the cell. The table is empty without an experiment `aa`."
)
TITLE = "Noise of the host"
NOTE = (
    "An A/A test runs the same closed loop on a server that Perseus restarts several times. Because"
    " nothing else changes, the throughputs differ only by the noise of the host. A deviation is"
    " the standard deviation of the throughput / the mean throughput over all starts of the server."
    " 95 % intervals are in brackets. In only 5 % of cases, two measurements with the same"
    " configuration differ by more than the noise floor."
)
SHOWN = {
    "cell": "cell",
    "restart": "restart",
    "throughput (requests/s)": ("answered_rps", "low_rps", "high_rps"),
    "deviation between windows": ("between_windows", "windows_low", "windows_high"),
    "deviation between restarts": ("between_restarts", "restarts_low", "restarts_high"),
    "noise floor": "noise_floor",
}
SCHEMA = Schema(
    [
        *CELL,
        column("concurrency", WHOLE, "requests",
            "number of requests that each tenant has in flight (concurrency)", least=1),
        column("restart", WHOLE, "",
            "index of the start of the server in the cell, starting at 1",
               least=1),
        column("windows", WHOLE, "windows",
            "number of windows after this start of the server, except the first window"),
        column("answered_rps", REAL, "requests/s",
            "total throughput of all tenants, as the mean over the windows after this start of the"
            " server"),
        column("low_rps", REAL, "requests/s",
            "lower end of the 95 % interval of `answered_rps`",
               least=-inf),
        column("high_rps", REAL, "requests/s",
            "upper end of the 95 % interval of `answered_rps`"),
        column("capacity_rps", REAL, "requests/s",
            "total throughput of all tenants, as the mean over all starts of the server"),
        column("between_windows", REAL, "share",
            "standard deviation of the throughput between windows after the same start of the"
            " server, divided by capacity_rps. Perseus combines the standard deviations after all"
            " starts of the server into one value.", most=inf),
        column("windows_low", REAL, "share",
            "lower end of the 95 % interval of `between_windows`, by the chi-squared distribution",
               most=inf),
        column("windows_high", REAL, "share",
            "upper end of the 95 % interval of `between_windows`", most=inf),
        column("between_restarts", REAL, "share",
            "standard deviation between the mean throughputs after different starts of the server,"
            " divided by capacity_rps", most=inf),
        column("restarts_low", REAL, "share",
            "lower end of the 95 % interval of `between_restarts`, by the chi-squared distribution",
               most=inf),
        column("restarts_high", REAL, "share",
            "upper end of the 95 % interval of `between_restarts`", most=inf),
        column("noise_floor", REAL, "share",
            "noise floor of the host. In only 5 % of cases, two measurements with the same"
            " configuration differ by more than this share (docs/explanation/noise.md).", most=inf),
        column("verdict", TEXT, "",
            "outcome of the cell: ok, client_limited, disturbed, throttled or failed",
               choices=("ok", "client_limited", "disturbed", "throttled", "failed")),
        column("reason", TEXT, "", "reason for a verdict other than ok"),
    ],
    key=("cell", "restart"),
    holds=[
        ascending("low_rps", "answered_rps", "high_rps"),
        ascending("windows_low", "between_windows", "windows_high"),
        ascending("restarts_low", "between_restarts", "restarts_high"),
    ],
)  # fmt: skip
"""Schema of the table. Columns that describe all starts of the server are null unless the column
`verdict` is `ok`."""


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.of_kind(AaRecord):
        yield from _of_cell(record)


def noise_floors(results: StudyResults) -> dict[str, float]:
    """Return the noise floor (share of the throughput) of each server, by the name of the server.

    If several cells measured the noise floor of a server, the result has the highest noise floor.
    """
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
