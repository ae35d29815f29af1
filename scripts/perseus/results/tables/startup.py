"""Table `startup`: starts of fresh servers."""

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
    """One start of a server; dictionaries are by tenant."""

    page_cache: str
    resident_share: float
    ready_s: float
    load_s: dict[str, float]
    first_inference_ms: dict[str, float]
    steady_inference_ms: dict[str, float]


class StartupRecord(Record):
    """The starts of a `startup` cell."""

    kind: ClassVar[str] = "startup"

    starts: tuple[Start, ...] = Field(
        description="per start, in their order: the state of the page cache that was asked for, the"
        " share of the model files that lay in memory, seconds to ready, and per tenant its load in"
        " seconds, its first and its steady inference in ms"
    )


RECORD = StartupRecord
DESCRIPTION = (
    "One row per start of a server and tenant; of a cell in which none started, one per tenant,"
    " which says why. Empty if there is none."
)
TITLE = "Starts of servers"
NOTE = (
    "Fresh servers, one after another: from the start to all models ready, the load of each model,"
    " its very first inference, and the median of those after it."
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
        column("start", WHOLE, "", "start, counted from 1 in its state of the page cache; null"
               " where none started", null=True, least=1),
        column("page_cache", TEXT, "", "warm or cold: whether the model files were left in the page"
               " cache, or the system was asked to take them out", null=True,
               choices=("warm", "cold")),
        column("resident_share", REAL, "share", "pages of the scenario's model files that lay in"
               " memory before the start: what was had of that"),
        column("ready_s", REAL, "s", "from the start of the server to all models ready"),
        column("tenant", TEXT, "", "name of the tenant"),
        column("model", TEXT, "", "model of the tenant"),
        column("load_s", REAL, "s", "load of the model, by the server's log; null where that is not"
               " here"),
        column("first_inference_ms", REAL, "ms", "the tenant's very first request"),
        column("steady_inference_ms", REAL, "ms", "median latency of single requests after it"),
        column("verdict", TEXT, "", "of the cell: ok, failed (a start failed, and there was none"
               " after it), infeasible (a grid's setting without a model), blocked, client_limited"
               ", disturbed or throttled", choices=VERDICTS),
        column("reason", TEXT, "", "why the verdict is not ok"),
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
                "resident_share": start.resident_share,
                "ready_s": start.ready_s,
                "tenant": tenant.name,
                "model": tenant.model,
                "load_s": start.load_s.get(tenant.name, float("nan")),
                "first_inference_ms": start.first_inference_ms[tenant.name],
                "steady_inference_ms": start.steady_inference_ms[tenant.name],
                **ended,
            }
