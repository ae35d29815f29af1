"""Make the table `startup`: the times that servers need to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pydantic import BaseModel, Field

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.results.columns import CELL, cell
from perseus.results.records import Record, Row
from perseus.results.schema import Schema, column
from perseus.results.study_results import StudyResults


class Start(BaseModel):
    """Times of one start of a server. `load_s`, `first_inference_ms` and `steady_inference_ms` have
    one entry per tenant."""

    page_cache: str
    resident_share: float
    ready_s: float
    load_s: dict[str, float]
    first_inference_ms: dict[str, float]
    steady_inference_ms: dict[str, float]


class StartupRecord(Record):
    """Record of repeated starts of a server (experiment `startup`)."""

    kind: ClassVar[str] = "startup"

    starts: tuple[Start, ...] = Field(
        description=(
            "one entry per start of the server, in the order of the starts. An entry has the"
            " requested state of the page cache, the share of the model files that was in memory"
            " before the start, and the seconds until the server was ready. For each tenant, an"
            " entry has the load time of its model in seconds, the latency of the first inference"
            " in ms, and the median latency of later inferences in ms."
        )
    )


RECORD = StartupRecord
DESCRIPTION = (
    "One row per cell, start of its server, and tenant. If no server of a cell started, the cell"
    " has one row per tenant, and the column `reason` says why. The table is empty without an"
    " experiment `startup`."
)
TITLE = "Starts of servers"
NOTE = (
    "Perseus starts the server several times, one start after another. 'Ready' is the time from the"
    " start until all models are ready. 'Load' is the time in which the server loads a model."
    " 'First inference' is the latency of the first inference of a model after the start. 'Steady"
    " inference' is the median latency of later inferences."
)
SHOWN = {
    "cell": "cell",
    "start": "start",
    "page cache": "page_cache",
    "files in memory": "resident_share",
    "ready (s)": "ready_s",
    "tenant": "tenant",
    "load (s)": "load_s",
    "first inference (ms)": "first_inference_ms",
    "steady inference (ms)": "steady_inference_ms",
    "verdict": "verdict",
    "why not": "reason",
}
VERDICTS = ("ok", "failed", "infeasible", "blocked", "client_limited", "disturbed", "throttled")
SCHEMA = Schema(
    [
        *CELL,
        column("start", WHOLE, "",
            "index of the start among the starts with the same state of the page cache, starting at"
            " 1. Null if no server started.", null=True, least=1),
        column("page_cache", TEXT, "",
            "state of the page cache that Perseus requests before the start: warm (the model files"
            " stay in the page cache) or cold (the system drops the model files from the page"
            " cache). The column `resident_share` states the actual state.",
               null=True,
               choices=("warm", "cold")),
        column("resident_share", REAL, "share",
            "share of the model files that was in the page cache before the server started (number"
            " of pages in the page cache / number of all pages). Null for a remote server."),
        column("ready_s", REAL, "s",
            "time from the start of the server until all models are ready. For a remote server, the"
            " time to load the models."),
        column("tenant", TEXT, "",
            "name of the tenant"),
        column("model", TEXT, "", "name of the tenant's model"),
        column("load_s", REAL, "s",
            "time in which the server loads the tenant's model, from the log of the server. Null if"
            " the log is not on this host."),
        column("first_inference_ms", REAL, "ms",
            "latency of Perseus's first request to the tenant after the start of the server"),
        column("steady_inference_ms", REAL, "ms",
            "median latency of the tenant's later requests, which the client sends one after"
            " another"),
        column("verdict", TEXT, "",
            "outcome of the cell: ok, blocked, client_limited, disturbed, throttled, failed (a"
            " start of the server failed, which ended the cell) or infeasible (Perseus could not"
            " export the model for a setting of a grid)", choices=VERDICTS),
        column("reason", TEXT, "", "reason for a verdict other than ok"),
    ],
    key=("cell", "page_cache", "start", "tenant"),
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.of_kind(StartupRecord):
        yield from _of_cell(record)


def _of_cell(record: StartupRecord) -> Iterator[Row]:
    task, counted = record.task, dict[str, int]()
    ended = {"verdict": record.outcome, "reason": record.reason}
    if not record.starts:
        for tenant in task.tenants:
            of = {"tenant": tenant.name, "model": tenant.model}
            yield {**dict.fromkeys(SCHEMA.names), **cell(task), **of, **ended}
    for start in record.starts:
        counted[start.page_cache] = counted.get(start.page_cache, 0) + 1
        for tenant in task.tenants:
            yield {
                **cell(task),
                "start": counted[start.page_cache],
                "page_cache": start.page_cache,
                "resident_share": None if task.server.remote else start.resident_share,
                "ready_s": start.ready_s,
                "tenant": tenant.name,
                "model": tenant.model,
                "load_s": start.load_s.get(tenant.name, float("nan")),
                "first_inference_ms": start.first_inference_ms[tenant.name],
                "steady_inference_ms": start.steady_inference_ms[tenant.name],
                **ended,
            }
