"""Table `soak`: how latency, memory and open files drift under the same load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np
from pydantic import BaseModel, Field

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.stats import Floats
from perseus.peak.verdict import Verdict
from perseus.results.columns import CELL, cell, with_ends
from perseus.results.drift import Trend, drift
from perseus.results.records import Number, Record, Row
from perseus.results.schema import Schema, ascending, column
from perseus.results.study_results import StudyResults

HOUR_NS = 3600e9
MB = 1e6


class Reading(BaseModel):
    """What the server's processes held between two windows; NaN where that is unknown."""

    time_ns: int
    memory_bytes: Number
    open_files: Number


@dataclass(frozen=True)
class Series:
    """Values of a quantity over the hours since the first window, shape (n,).

    It is of a tenant, or of the server as a whole.
    """

    quantity: str
    tenant: str | None
    unit: str
    hours: Floats
    values: Floats


class SoakRecord(Record):
    """What the same load for hours found."""

    kind: ClassVar[str] = "soak"

    rates_rps: dict[str, Number] = Field(
        description="per tenant the rate that was offered, requests/s; null where it is a share of"
        " a dedicated peak that was not found"
    )
    readings: tuple[Reading, ...] = Field(
        description="after each window, `time_ns` (monotonic clock), and what the server's"
        " processes held then: `memory_bytes`, their resident sets summed, and `open_files`, file"
        " descriptors; null where this host cannot tell"
    )

    def series(self) -> list[Series]:
        """Of each tenant the median and the percentile of its SLA, in valid windows; then what the
        server held."""
        windows = self.windows()
        start_ns = min((row["start_ns"] for row in windows), default=0)
        found = []
        for tenant in self.task.tenants:
            mine = [row for row in windows if row["tenant"] == tenant.name]
            valid = [row for row in mine if row["verdict"] != Verdict.INVALID]
            middles_ns = [row["start_ns"] + row["elapsed_s"] / 2 * 1e9 for row in valid]
            columns = {"p50": "p50_ms", f"p{tenant.sla.percentile:g}": "sla_percentile_ms"}
            for name, of in columns.items():
                values = np.array([row[of] for row in valid], float)
                found.append(_series(name, tenant.name, "ms", middles_ns, values, start_ns))
        times_ns = [each.time_ns for each in self.readings]
        memory = np.array([each.memory_bytes for each in self.readings]) / MB
        files = np.array([each.open_files for each in self.readings])
        found.append(_series("memory", None, "MB", times_ns, memory, start_ns))
        found.append(_series("open files", None, "files", times_ns, files, start_ns))
        return found


def _series(
    quantity: str,
    tenant: str | None,
    unit: str,
    times_ns: Sequence[float],
    values: Floats,
    start_ns: int,
) -> Series:
    """Without what is unknown, or has no end since so much of it was unanswered."""
    known, hours = np.isfinite(values), (np.array(times_ns) - start_ns) / HOUR_NS
    return Series(quantity, tenant, unit, hours[known], values[known])


RECORD = SoakRecord
DESCRIPTION = "One row per cell and quantity that may drift."
TITLE = "Soak"
NOTE = (
    "The same load on one server for hours. A quantity grows or falls where the 95 % interval of"
    " its change per hour (in brackets) leaves no doubt of that, and it came to 1 % of the level at"
    " the start; it is steady where the interval leaves no room for 10 % of that per hour. Memory"
    " and open files are those of the server's processes, between windows."
)
SHOWN = {
    "cell": "cell",
    "tenant": "tenant",
    "quantity": "quantity",
    "unit": "unit",
    "hours": "hours",
    "at the start": "level",
    "change per hour": ("per_hour", "low_per_hour", "high_per_hour"),
    "drift": "drift",
    "verdict": "verdict",
    "reason": "reason",
}
VERDICTS = ("ok", "infeasible", "blocked", "client_limited", "disturbed", "failed")
SCHEMA = Schema(
    [
        *CELL,
        column("tenant", TEXT, "", "name of the tenant; null of what the server as a whole holds",
               null=True),
        column("quantity", TEXT, "", "p50 or the percentile of the SLA, of the latency; memory or"
               " open files of the server's processes"),
        column("unit", TEXT, "", "of level and change: ms, MB (10^6 bytes) or files"),
        column("rate_rps", REAL, "requests/s", "offered rate of the tenant; null of the server"),
        column("windows", WHOLE, "windows", "windows that say something of it, warm-up included"),
        column("warm_up_hours", REAL, "h", "from the first window to the first that counts"),
        column("hours", REAL, "h", "from the first that counts to the last"),
        column("level", REAL, "see unit", "where the fitted line begins, after the warm-up",
               least=-inf),
        column("per_hour", REAL, "unit/h", "slope of the fitted line", least=-inf),
        column("low_per_hour", REAL, "unit/h", "its 95 % interval (docs/method.md, Soak), lower"
               " end", least=-inf),
        column("high_per_hour", REAL, "unit/h", "upper end", least=-inf),
        column("drift", TEXT, "", "grows, falls, steady or too short to tell", words=Trend),
        column("verdict", TEXT, "", "ok, infeasible (the server died under the load), blocked,"
               " client_limited, disturbed or failed", words=VERDICTS),
        column("reason", TEXT, "", "why not ok, in words"),
    ],
    key=("cell", "tenant", "quantity"),
    holds=[ascending("low_per_hour", "per_hour", "high_per_hour")],
)  # fmt: skip
"""Null what cannot be told of so few windows."""


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.of_kind(SoakRecord):
        for series in record.series():
            yield _row(record, series)


def _row(record: SoakRecord, series: Series) -> Row:
    found, hours = drift(series.hours, series.values), series.hours
    ends = ("low_per_hour", "high_per_hour")
    return {
        **cell(record.task),
        "tenant": series.tenant,
        "quantity": series.quantity,
        "unit": series.unit,
        "rate_rps": None if series.tenant is None else record.rates_rps[series.tenant],
        "windows": len(hours),
        "warm_up_hours": hours[found.first] - hours[0] if len(hours) else None,
        "hours": found.hours if len(hours) else None,
        "level": found.level,
        **with_ends("per_hour", found.per_hour, ends),
        "drift": found.trend,
        "verdict": record.outcome,
        "reason": record.reason,
    }
