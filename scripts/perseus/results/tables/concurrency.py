"""Make the table `concurrency`: the throughput and the latencies of each tenant in closed loops."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import ClassVar

from pydantic import BaseModel, Field

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.peak.verdict import Verdict
from perseus.results.columns import (
    CELL,
    CLIENT_CPU_LOAD,
    EFFECTIVE_REQUESTS,
    WINDOW,
    cell,
    compute_ms,
)
from perseus.results.records import Number, Record, Row
from perseus.results.schema import Schema, ascending, column
from perseus.results.study_results import StudyResults


class Level(BaseModel):
    """Throughput of one tenant in a closed loop in which each tenant has `concurrency` requests in
    flight."""

    concurrency: int
    tenant: str
    answered_rps: float
    low_rps: Number
    high_rps: Number


class ConcurrencyRecord(Record):
    """Record of closed loops at several concurrencies (numbers of requests in flight)."""

    kind: ClassVar[str] = "concurrency"

    levels: tuple[Level, ...] = Field(
        description=(
            "for each concurrency and tenant, the throughput with its 95 % interval, requests/s"
        )
    )

    def totals_rps(self) -> dict[int, float]:
        """Return the total throughput of all tenants in requests/s, by the number of requests that
        all tenants together have in flight. The numbers are in ascending order.

        The result leaves out closed loops in which the client or the host may have limited the
        throughput, or in which no request got a response.
        """
        rows = [row for row in self.windows() if row["window_verdict"] == Verdict.INVALID]
        invalid = {int(row["scale"]) for row in rows}
        tenants, found = len(self.task.tenants), dict[int, float]()
        for level in self.levels:
            if level.concurrency not in invalid:
                in_flight = tenants * level.concurrency
                found[in_flight] = found.get(in_flight, 0.0) + level.answered_rps
        return {in_flight: rate for in_flight, rate in sorted(found.items()) if rate > 0}


RECORD = ConcurrencyRecord
DESCRIPTION = (
    "One row per closed loop (cell and concurrency) and tenant. The table is empty without an"
    " experiment `concurrency`."
)
TITLE = "Closed loops"
NOTE = (
    "In a closed loop, each tenant has a fixed number of requests in flight: the client sends a"
    " request when it receives a response. A slower server therefore receives fewer requests, so a"
    " closed loop does not test an SLA. 95 % intervals are in brackets."
)
SHOWN = {
    "cell": "cell",
    "tenant": "tenant",
    "in flight per tenant": "concurrency",
    "throughput (requests/s)": ("answered_rps", "low_rps", "high_rps"),
    "p50 (ms)": "p50_ms",
    "p95 (ms)": ("p95_ms", "p95_low_ms", "p95_high_ms"),
    "p99 (ms)": "p99_ms",
    "valid": "valid",
    "why not": "reason",
}
SCHEMA = Schema(
    [
        *CELL,
        column("tenant", TEXT, "", "name of the tenant"),
        column("model", TEXT, "", "name of the tenant's model"),
        column("concurrency", WHOLE, "requests",
            "number of requests that each tenant has in flight (concurrency)", least=1),
        column("answered_rps", REAL, "requests/s",
            "throughput of the tenant in the closed loop", null=False),
        column("low_rps", REAL, "requests/s",
            "lower end of the 95 % interval of `answered_rps`, by batch means",
               least=-inf),
        column("high_rps", REAL, "requests/s",
            "upper end of the 95 % interval of `answered_rps`"),
        column("requests", WHOLE, "requests",
            "number of the tenant's requests from which Perseus computes the throughput and the"
            " latencies"),
        column("effective_requests", REAL, "requests", EFFECTIVE_REQUESTS),
        column("batches", WHOLE, "batches",
            "number of batches (groups of consecutive requests, at most 10) into which Perseus"
            " divides the requests to compute 95 % intervals"),
        column("errors", WHOLE, "requests",
            "number of requests that failed, timed out, were refused or were not sent"),
        column("p50_ms", REAL, "ms",
            "median latency, measured from the actual send time"),
        column("p95_ms", REAL, "ms", "95th percentile of the latency"),
        column("p95_low_ms", REAL, "ms", "lower end of the 95 % interval of `p95_ms`"),
        column("p95_high_ms", REAL, "ms",
            "upper end of the 95 % interval of `p95_ms`. Infinite if there are too few requests for"
            " an upper bound."),
        column("p99_ms", REAL, "ms", "99th percentile of the latency"),
        column("queue_ms", REAL, "ms", "mean time that a request waits in the queue of the server"),
        column("compute_ms", REAL, "ms",
            "mean time that the server works on a request: preparation of the inputs, inference,"
            " and preparation of the outputs"),
        column("client_ms", REAL, "ms",
            "mean time of a request in transport and in the client: mean latency minus queue_ms and"
            " compute_ms"),
        column("client_cpu", REAL, "cores", CLIENT_CPU_LOAD),
        column("valid", FLAG, "",
            "true if the closed loop is valid: neither the client nor the host limited the"
            " throughput"),
        column("reason", TEXT, "",
            "reason why the closed loop is not valid. Empty if the closed loop is valid."),
    ],
    key=("cell", "tenant", "concurrency"),
    holds=[
        ascending("low_rps", "answered_rps", "high_rps"),
        ascending("p50_ms", "p95_ms", "p99_ms"),
        ascending("p95_low_ms", "p95_ms", "p95_high_ms"),
    ],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.of_kind(ConcurrencyRecord):
        yield from _of_cell(record)


def _of_cell(record: ConcurrencyRecord) -> Iterator[Row]:
    task = record.task
    at = {(int(row["scale"]), row["tenant"]): row for row in record.windows()}
    # For each invalid concurrency, the reason of the first tenant whose part is invalid.
    reasons: dict[int, str] = {}
    for (concurrency, _), row in at.items():
        if row["verdict"] == Verdict.INVALID:
            reasons.setdefault(concurrency, row["reason"])
    models = {tenant.name: tenant.model for tenant in task.tenants}
    for level in record.levels:
        seen = at[level.concurrency, level.tenant]
        invalid = seen["window_verdict"] == Verdict.INVALID
        yield {
            **cell(task),
            "tenant": level.tenant,
            "model": models[level.tenant],
            "concurrency": level.concurrency,
            "answered_rps": level.answered_rps,
            "low_rps": level.low_rps,
            "high_rps": level.high_rps,
            **{name: seen[name] for name in (*WINDOW, "client_cpu")},
            "compute_ms": compute_ms(seen),
            "valid": not invalid,
            "reason": reasons.get(level.concurrency, seen["reason"]) if invalid else "",
        }
