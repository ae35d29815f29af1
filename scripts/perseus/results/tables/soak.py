"""Make the table `soak`: the drift of latency, memory, open files and failed requests under
constant load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from scipy import special

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.stats import TAIL, Floats
from perseus.peak.verdict import ANSWERED, Verdict
from perseus.results.columns import CELL, cell, with_ends
from perseus.results.drift import Trend, drift
from perseus.results.records import Number, Record, Row
from perseus.results.schema import Schema, ascending, column
from perseus.results.study_results import StudyResults

HOUR_NS = 3600e9
MB = 1e6
FAILED_REQUESTS = "failed requests"


class Reading(BaseModel):
    """Memory and number of open files of the server after a window; NaN if unknown."""

    time_ns: int
    memory_bytes: Number
    open_files: Number


@dataclass(frozen=True)
class Series:
    """The n values of a quantity, such as a latency, over the time of a soak test.

    `hours` (time since the start of the first window), `values` and `requests` have shape (n,). The
    quantity belongs to `tenant`, or to the whole server if `tenant` is None. A latency is infinite
    if too many requests failed. Perseus judges the size of a change relative to `scale`. If `scale`
    is None, Perseus uses the value of the fitted line at the end of the warm-up instead.

    For the quantity failed requests, `requests` has the number of requests in each window, and
    `values` has the percentage of these requests that failed. For the latency at the percentile of
    the SLA, `exceedance` is the share of late requests, and `allowed` is the share of late requests
    that the SLA allows. For other quantities, both are NaN.
    """

    quantity: str
    tenant: str | None
    unit: str
    hours: Floats
    values: Floats
    scale: float | None = None
    requests: NDArray[np.int64] | None = None
    exceedance: float = np.nan
    allowed: float = np.nan


class SoakRecord(Record):
    """Record of a soak test."""

    kind: ClassVar[str] = "soak"

    rates_rps: dict[str, Number] = Field(
        description=(
            "per tenant, the offered rate in requests/s. Null if the rate is configured as a share"
            " of a dedicated peak that the search did not find."
        )
    )
    readings: tuple[Reading, ...] = Field(
        description=(
            "one entry after each window. `time_ns` is the time on the monotonic clock."
            " `memory_bytes` is the sum of the resident memory of the server's processes, and"
            " `open_files` is the number of file descriptors that these processes have open. A"
            " value that Perseus cannot read on this host is null."
        )
    )

    def series(self) -> list[Series]:
        """Return the values of each quantity that can drift over the time of the soak test.

        Each tenant has three quantities, measured in valid windows: the median latency, the latency
        at the percentile of the SLA, and the failed requests. The server has two quantities: its
        memory and its open files.
        """
        windows = self.windows()
        start_ns = min((row["start_ns"] for row in windows), default=0)
        found = []
        for tenant in self.task.tenants:
            mine = [row for row in windows if row["tenant"] == tenant.name]
            valid = [row for row in mine if row["verdict"] != Verdict.INVALID]
            middles_ns = [row["start_ns"] + row["elapsed_s"] / 2 * 1e9 for row in valid]
            requests = np.array([row["requests"] for row in valid], int)
            # A window without requests has no exceedance.
            late = [row["exceedance"] * row["requests"] for row in valid if row["requests"]]
            exceedance = sum(late) / requests.sum() if late else np.nan
            allowed, of_sla = tenant.sla.allowed, f"p{tenant.sla.percentile:g}"
            for name, of in {"p50": "p50_ms", of_sla: "sla_percentile_ms"}.items():
                values = np.array([row[of] for row in valid], float)
                latency = _series(name, tenant.name, "ms", middles_ns, values, start_ns)
                if name == of_sla:
                    latency = replace(latency, exceedance=exceedance, allowed=allowed)
                found.append(latency)
            percent = np.array([100 * (1 - row["completed_ratio"]) for row in valid])
            failed = _series(FAILED_REQUESTS, tenant.name, "%", middles_ns, percent, start_ns)
            found.append(replace(failed, scale=100 * allowed, requests=requests))
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
    known, hours = ~np.isnan(values), (np.array(times_ns) - start_ns) / HOUR_NS
    return Series(quantity, tenant, unit, hours[known], values[known])


RECORD = SoakRecord
DESCRIPTION = (
    "One row per cell and quantity that can drift, such as the memory of the server. The table is"
    " empty without an experiment `soak`."
)
TITLE = "Soak"
NOTE = (
    "One server carries a constant load for hours. A quantity grows or falls under two conditions:"
    " (1) the 95 % interval of its change per hour (in brackets) excludes 0; (2) the change over"
    " the whole time is at least 1 % of the level at the start. Otherwise, a quantity is steady if"
    " the interval lies between -10 % and 10 % of the level at the start. For failed requests,"
    " these percentages"
    " refer to the largest exceedance within the SLA (5 % for p95) instead of the level. A"
    " percentile of the latency is infinite in a window in which too many requests failed (more"
    " than 5 % for p95). A latency with infinite values never counts as steady. Perseus measures"
    " the memory and the open files of the server's processes between windows."
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
    "late requests (share)": "exceedance",
    "allowed by the SLA (share)": "allowed",
    "failed requests": "failed_requests",
    "of requests": "requests",
    "over 1 % of requests failed from hour": "failing_from_hours",
    "verdict": "verdict",
    "reason": "reason",
}
VERDICTS = ("ok", "infeasible", "blocked", "client_limited", "disturbed", "throttled", "failed")
SCHEMA = Schema(
    [
        *CELL,
        column("tenant", TEXT, "", "name of the tenant. Null for quantities of the whole server.",
               null=True),
        column("quantity", TEXT, "",
            "quantity that may drift. A tenant has the quantities p50 (median latency), the latency"
            " at the percentile of its SLA (such as p95) and failed requests. The server has the"
            " quantities memory and open files."),
        column("unit", TEXT, "",
            "unit of the columns `level` and `per_hour`: ms, MB (10^6 bytes), files or % (of the"
            " requests)"),
        column("rate_rps", REAL, "requests/s",
            "offered rate of the tenant. Null for quantities of the whole server."),
        column("windows", WHOLE, "windows",
            "number of windows with a value of the quantity, including the warm-up"),
        column("warm_up_hours", REAL, "h",
            "time from the first value of the quantity to the end of the warm-up. To find the"
            " drift, Perseus fits a straight line to the values after the warm-up."),
        column("hours", REAL, "h",
            "time from the first to the last value after the warm-up"),
        column("level", REAL, "see unit",
               "value of the fitted straight line at the end of the warm-up", least=-inf),
        column("per_hour", REAL, "unit/h",
            "slope of the fitted straight line: the change of the quantity per hour", least=-inf),
        column("low_per_hour", REAL, "unit/h",
            "lower end of the 95 % interval of `per_hour`", least=-inf),
        column("high_per_hour", REAL, "unit/h",
            "upper end of the 95 % interval of `per_hour`", least=-inf),
        column("drift", TEXT, "",
            "trend of the quantity: steady, grows, falls, too short to tell, or infinite at times"
            " (in some windows, the latency is infinite because too many requests failed)",
               choices=Trend),
        column("exceedance", REAL, "share",
            "share of late requests in all valid windows: requests that took longer than the SLA"
            " allows or got no response. Only the row of the latency at the percentile of the SLA"
            " has a value.",
               most=1),
        column("allowed", REAL, "share",
            "share of requests that the SLA allows to be late. Only the row of the latency at the"
            " percentile of the SLA has a value.", most=1),
        column("requests", WHOLE, "requests",
            "number of requests in all valid windows. Only the row of failed requests has a"
            " value.", null=True),
        column("failed_requests", WHOLE, "requests",
            "number of failed requests: errors, refusals, and requests without a response by the"
            " end of their window. Only the row of failed requests has a value.", null=True),
        column("failing_from_hours", REAL, "h",
            "time from the start of the soak test to the middle of the first window in which too"
            " many requests failed: over 1 % of the requests in this window, and significantly over"
            " 1 % of the requests from this window to the end of the test"
            " (docs/explanation/soak.md). Null if there is no such window."),
        column("verdict", TEXT, "",
            "verdict on the cell: ok, blocked, client_limited, disturbed, throttled, failed or"
            " infeasible (the server died under the load)", choices=VERDICTS),
        column("reason", TEXT, "", "reason for a verdict other than ok"),
    ],
    key=("cell", "tenant", "quantity"),
    holds=[
        ascending("low_per_hour", "per_hour", "high_per_hour"),
        ascending("failed_requests", "requests"),
    ],
)  # fmt: skip
"""Schema of the table. A value is null if there are too few windows to compute it."""


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.of_kind(SoakRecord):
        for series in record.series():
            yield _row(record, series)


def _row(record: SoakRecord, series: Series) -> Row:
    found, hours = drift(series.hours, series.values, series.scale), series.hours
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
        "exceedance": series.exceedance,
        "allowed": series.allowed,
        **_failed_requests(series),
        "verdict": record.outcome,
        "reason": record.reason,
    }


def _failed_requests(series: Series) -> Row:
    """Return the columns `requests`, `failed_requests` and `failing_from_hours`, which are None for
    quantities other than failed requests."""
    if series.requests is None:
        return dict.fromkeys(("requests", "failed_requests", "failing_from_hours"))
    failed = np.round(series.requests * series.values / 100)
    return {
        "requests": series.requests.sum(),
        "failed_requests": int(failed.sum()),
        "failing_from_hours": min(series.hours[failing(series.requests, failed)], default=None),
    }


def failing(requests: NDArray[np.int64], failed: Floats) -> NDArray[np.bool_]:
    """Return for each of n windows whether too many requests failed. All arrays have shape (n,).

    Two conditions must hold. First, more than 1 % of the requests in the window failed. Second,
    significantly more than 1 % of the requests from the start of the window to the end of the test
    failed (Clopper-Pearson interval).
    """
    later, lost = (np.cumsum(each[::-1])[::-1] for each in (requests, failed))
    surely = special.betaincinv(lost, later - lost + 1, TAIL) > 1 - ANSWERED
    return np.asarray(surely & (failed > (1 - ANSWERED) * requests))
