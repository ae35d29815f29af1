"""Make the table `replay`: results with bursty or recorded arrivals of requests.

A tenant has load in two phases: together with all other tenants, and alone. The client sends the
requests to the tenant at the same times in both phases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from pydantic import BaseModel, Field

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.attainment import ReplayVerdict
from perseus.results.columns import CELL, CLIENT_CPU_LOAD, EFFECTIVE_REQUESTS, cell
from perseus.results.records import Number, Record, Row
from perseus.results.schema import Schema, ascending, column
from perseus.results.study_results import StudyResults
from perseus.study.experiments.replay import Run
from perseus.study.tasks.measure import MeasuredTenant


class Minute(BaseModel):
    """One minute of a window: the number of its requests, and how many of them met the SLA."""

    start_s: int
    requests: int
    within: int


class Burst(BaseModel):
    """A burst of arrivals, and the recovery time of the server in s. The recovery time is None if
    the server had not recovered by the end of the window."""

    start_s: int
    end_s: int
    requests: int
    recovery_s: float | None


class Fidelity(BaseModel):
    """Statistics of the send lag (actual minus intended send time), and number of requests that the
    client dropped."""

    lag_p50_ms: Number
    lag_p99_ms: Number
    lag_max_ms: Number
    punctual: Number
    unsent: int


class Offered(BaseModel):
    """Result of one tenant in one window of a replay."""

    phase: str
    tenant: str
    window: int
    rate_rps: float
    verdict: str
    reason: str
    attained: Number
    attained_low: Number
    attained_high: Number
    worst_minute: Minute
    bursts: tuple[Burst, ...]
    most_in_flight: int
    fidelity: Fidelity
    requests_each_s: tuple[int, ...]
    within_each_s: tuple[int, ...]

    @property
    def longest_recovery_s(self) -> float:
        """Longest recovery time after a burst in s; NaN without bursts.

        The time is infinite if the server had not recovered by the end of the window.
        """
        found = [np.inf if each.recovery_s is None else each.recovery_s for each in self.bursts]
        return max(found, default=np.nan)

    @property
    def dispersion(self) -> float:
        """Index of dispersion of the number of arrivals per second (variance / mean); NaN without
        requests."""
        counts = np.array(self.requests_each_s)
        return float(counts.var() / counts.mean()) if counts.any() else np.nan


class ReplayRecord(Record):
    """Record of a replay, in which the client sends requests at the same times to all tenants
    together and to each tenant alone."""

    kind: ClassVar[str] = "replay"

    offered: tuple[Offered, ...] = Field(
        description=(
            "one entry per phase (shared, alone) and tenant with load. An entry has the configured"
            " mean rate, the verdict, and the share of requests within the SLA with its 95 %"
            " interval. An entry also has the largest number of requests in flight, the worst"
            " minute (the minute with the lowest share), and the bursts of the arrivals. `window`"
            " is the index of the window in windows.parquet. Each burst has the seconds until"
            " recovery. This value is null if the server had not recovered by the end of the"
            " window. `fidelity` has the send lag, the share of"
            " requests that the client sent within 1 ms of their intended send time, and the number"
            " of requests that the client dropped. `requests_each_s` has the number of requests"
            " with an intended send time in each second of the window, and `within_each_s` has the"
            " number of these requests within the SLA."
        )
    )

    @property
    def run(self) -> Run:
        return Run.model_validate(self.task.run)

    def of(self, phase: str, tenant: str) -> Offered | None:
        """Return the result of a tenant in a phase ("shared" or "alone"); None if the phase was not
        measured."""
        same = (each for each in self.offered if (each.phase, each.tenant) == (phase, tenant))
        return next(same, None)


RECORD = ReplayRecord
DESCRIPTION = (
    "One row per replay (cell), phase (shared, alone) and tenant. Columns of measured values are"
    " null in the rows of a phase that Perseus did not measure. The table is empty without an"
    " experiment `replay`."
)
TITLE = "Bursts and traces"
NOTE = (
    "The client sends requests at the same times to all tenants together (phase shared) and to each"
    " tenant alone on the same server (phase alone). 'Attained' is the share of requests within the"
    " SLA, with its 95 % interval in brackets. The worst minute is the 60 s with the lowest share"
    " of requests within the SLA, and may begin at any second. The recovery is the time from the"
    " end of a burst until all requests of the burst have ended and the SLA has held for one"
    " second."
    " 'Sent on time' is the share of requests that the client sent within 1 ms of the intended send"
    " time. If this share is low, the client, not the server, delayed requests."
)
SHOWN = {
    "cell": "cell",
    "tenant": "tenant",
    "phase": "phase",
    "configured (requests/s)": "rate_rps",
    "offered": "offered_rps",
    "busiest second": "busiest_rps",
    "attained": ("attained", "attained_low", "attained_high"),
    "worst minute": "worst_minute_attained",
    "from (s)": "worst_minute_start_s",
    "bursts": "bursts",
    "worst recovery (s)": "worst_recovery_s",
    "most in flight": "most_in_flight",
    "sent on time": "punctual",
    "verdict": "verdict",
    "why not": "reason",
}
PHASES = ("shared", "alone")
SCHEMA = Schema(
    [
        *CELL,
        column("tenant", TEXT, "", "name of the tenant"),
        column("model", TEXT, "", "name of the tenant's model"),
        column("phase", TEXT, "",
            "phase of the replay: shared (all tenants have load) or alone (only this tenant has"
            " load). Both phases have the same intended send times.",
               choices=PHASES),
        column("process", TEXT, "", "arrival process: poisson, gamma, mmpp or trace",
               choices=("poisson", "gamma", "mmpp", "trace")),
        column("duration_s", REAL, "s", "duration of the replayed arrivals", null=False),
        column("rate_rps", REAL, "requests/s", "configured mean rate of the tenant"),
        column("offered_rps", REAL, "requests/s",
            "mean rate of the tenant's arrivals, which Perseus drew at random or read from the"
            " trace"),
        column("busiest_rps", REAL, "requests/s",
            "largest number of the tenant's arrivals in one second"),
        column("dispersion", REAL, "",
            "index of dispersion, which says how bursty the arrivals are: variance / mean of the"
            " number of arrivals per second. The index of Poisson arrivals is about 1.", least=0),
        column("requests", WHOLE, "requests", "number of requests that the client sent", null=True),
        column("effective_requests", REAL, "requests", EFFECTIVE_REQUESTS),
        column("errors", WHOLE, "requests",
            "number of requests that failed, timed out, were refused or were not sent",
               null=True),
        column("sla_percentile", REAL, "%",
            "percentile of the latency for which the SLA sets a limit, such as 95 for p95",
               null=False),
        column("sla_ms", REAL, "ms",
            "latency limit of the SLA: at least `sla_percentile` % of the requests must have at"
            " most this latency", null=False),
        column("attained", REAL, "share",
            "share of the requests that got a response within `sla_ms` (attainment)"),
        column("attained_low", REAL, "share",
            "lower end of the 95 % interval of `attained` (docs/explanation/verdict.md)"),
        column("attained_high", REAL, "share",
            "upper end of the 95 % interval of `attained`"),
        column("p50_ms", REAL, "ms",
            "median latency, measured from the intended send time"),
        column("p95_ms", REAL, "ms", "95th percentile of the latency"),
        column("p99_ms", REAL, "ms", "99th percentile of the latency"),
        column("worst_minute_start_s", WHOLE, "s",
            "time from the start of the window to the start of the worst minute: the 60 s with the"
            " lowest attainment. If the window is shorter than 60 s, the worst minute is the whole"
            " window.", null=True),
        column("worst_minute_requests", WHOLE, "requests",
            "number of requests with an intended send time in the worst minute", null=True),
        column("worst_minute_attained", REAL, "share",
            "share of the requests in the worst minute that got a response within `sla_ms`"),
        column("bursts", WHOLE, "",
            "number of bursts in the arrivals of the tenant (docs/explanation/replay.md)",
               null=True),
        column("worst_recovery_s", REAL, "s",
            "longest recovery time after a burst: the time from the end of the burst until all its"
            " requests have ended and the SLA has held for one second. Infinite if the server had"
            " not recovered from a burst by the end of the window."),
        column("most_in_flight", WHOLE, "requests",
            "largest number of requests that were in flight at one time. A request is in flight"
            " from its intended send time until its response.", null=True),
        column("lag_p50_ms", REAL, "ms",
            "median of the send lag (actual minus intended send time)"),
        column("lag_p99_ms", REAL, "ms", "99th percentile of the send lag"),
        column("lag_max_ms", REAL, "ms", "maximum of the send lag"),
        column("punctual", REAL, "share",
            "share of requests that the client sent within 1 ms of their intended send times"),
        column("unsent", WHOLE, "requests",
            "number of requests that the client dropped because too many requests were in"
            " flight", null=True),
        column("client_cpu", REAL, "cores", CLIENT_CPU_LOAD),
        column("verdict", TEXT, "",
            "verdict on the tenant in this phase: ok, sla_missed, client_limited, disturbed,"
            " failed, blocked or infeasible (Perseus could not export the model for a setting of a"
            " grid)",
               choices=(*ReplayVerdict, "failed", "blocked", "infeasible")),
        column("reason", TEXT, "", "reason for a verdict other than ok"),
    ],
    key=("cell", "tenant", "phase"),
    holds=[
        ascending("attained_low", "attained", "attained_high"),
        ascending("p50_ms", "p95_ms", "p99_ms"),
        ascending("lag_p50_ms", "lag_p99_ms", "lag_max_ms"),
    ],
)  # fmt: skip
"""Schema of the table. Columns of measured values are null in the rows of a phase that was not
measured."""

OF_WINDOW = (
    "offered_rps",
    "requests",
    "effective_requests",
    "errors",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "client_cpu",
)


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.of_kind(ReplayRecord):
        windows = {(row["window"], row["tenant"]): row for row in record.windows()}
        tenants = record.task.tenants
        for phase in record.run.phases(len(tenants)):
            for tenant in (tenants[i] for i in phase.loaded):
                found = record.of(phase.name, tenant.name)
                yield {
                    **dict.fromkeys(SCHEMA.names),
                    **_asked(record, tenant, phase.name),
                    **(_found(found, windows[found.window, tenant.name]) if found else {}),
                }


def _asked(record: ReplayRecord, tenant: MeasuredTenant, phase: str) -> Row:
    """Return the columns of a row that are known even if the phase was not measured."""
    return {
        **cell(record.task),
        "tenant": tenant.name,
        "model": tenant.model,
        "phase": phase,
        "process": record.run.process,
        "duration_s": record.run.duration_s,
        "sla_percentile": tenant.sla.percentile,
        "sla_ms": tenant.sla.latency_ms,
        "verdict": record.outcome,
        "reason": record.reason,
    }


def _found(found: Offered, window: Row) -> Row:
    minute = found.worst_minute
    return {
        **{name: window[name] for name in OF_WINDOW},
        "rate_rps": found.rate_rps,
        "busiest_rps": float(max(found.requests_each_s)),
        "dispersion": found.dispersion,
        "attained": found.attained,
        "attained_low": found.attained_low,
        "attained_high": found.attained_high,
        "worst_minute_start_s": minute.start_s,
        "worst_minute_requests": minute.requests,
        "worst_minute_attained": minute.within / minute.requests if minute.requests else np.nan,
        "bursts": len(found.bursts),
        "worst_recovery_s": found.longest_recovery_s,
        "most_in_flight": found.most_in_flight,
        **found.fidelity.model_dump(),
        "verdict": found.verdict,
        "reason": found.reason,
    }
