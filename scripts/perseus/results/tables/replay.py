"""Table `replay`: bursty or recorded arrivals, sent to all tenants together and to each alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from pydantic import BaseModel, Field

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.attainment import ReplayVerdict
from perseus.results.columns import CELL, cell
from perseus.results.records import Number, Record, Row
from perseus.results.schema import Schema, ascending, column
from perseus.results.study_results import StudyResults
from perseus.study.experiments.replay import Run
from perseus.study.tasks.measure import MeasuredTenant


class Minute(BaseModel):
    """A minute of a window: its requests, and those within the SLA."""

    start_s: int
    requests: int
    within: int


class Burst(BaseModel):
    """A burst, and its recovery time; None if the server had not recovered."""

    start_s: int
    end_s: int
    requests: int
    recovery_s: float | None


class Fidelity(BaseModel):
    """How close actual send times are to intended send times."""

    lag_p50_ms: Number
    lag_p99_ms: Number
    lag_max_ms: Number
    punctual: Number
    unsent: int


class Offered(BaseModel):
    """The result of one tenant in one window."""

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
        """The longest recovery; infinite if one had not ended, NaN without bursts."""
        found = [np.inf if each.recovery_s is None else each.recovery_s for each in self.bursts]
        return max(found, default=np.nan)

    @property
    def dispersion(self) -> float:
        """The index of dispersion of the counts per second; NaN without requests."""
        counts = np.array(self.requests_each_s)
        return float(counts.var() / counts.mean()) if counts.any() else np.nan


class ReplayRecord(Record):
    """The results of arrivals that were sent to all tenants together and to each alone."""

    kind: ClassVar[str] = "replay"

    offered: tuple[Offered, ...] = Field(
        description=(
            "per phase (shared, alone) and tenant with load: its `window` of windows.parquet, the"
            " configured mean rate, the verdict, the share of requests within the SLA with its 95"
            " % interval, the worst minute, the bursts of its arrivals, each with the seconds"
            " until recovery (null if the server had not recovered), the most requests in flight,"
            " `fidelity` (send lag, share sent within 1 ms, unsent), and for each second since the"
            " start of the window the requests with an intended send time in it and those within"
            " the SLA"
        )
    )

    @property
    def run(self) -> Run:
        return Run.model_validate(self.task.run)

    def of(self, phase: str, tenant: str) -> Offered | None:
        """Return the result of a tenant in a phase; None if the phase was not measured."""
        same = (each for each in self.offered if (each.phase, each.tenant) == (phase, tenant))
        return next(same, None)


RECORD = ReplayRecord
DESCRIPTION = "One row per phase (together, alone) and tenant of a replay; empty without a replay."
TITLE = "Bursts and traces"
NOTE = (
    "The same arrivals, sent to all tenants together (shared) and to each tenant alone on the same"
    " server. Attained: requests within the SLA, 95 % interval in brackets; the worst minute may"
    " begin at any second. Recovery: from the end of a burst until all its requests have ended and"
    " the SLA held for a second. Sent on time: within 1 ms; the client causes late sends."
)
SHOWN = {
    "cell": "cell",
    "tenant": "tenant",
    "phase": "phase",
    "asked (requests/s)": "rate_rps",
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
        column("model", TEXT, "", "model of the tenant"),
        column("phase", TEXT, "", "shared (all tenants together) or alone, with the same arrivals",
               choices=PHASES),
        column("process", TEXT, "", "poisson, gamma, mmpp or trace",
               choices=("poisson", "gamma", "mmpp", "trace")),
        column("duration_s", REAL, "s", "length of the arrivals", null=False),
        column("rate_rps", REAL, "requests/s", "configured mean rate"),
        column("offered_rps", REAL, "requests/s", "mean rate of the drawn arrivals"),
        column("busiest_rps", REAL, "requests/s", "most arrivals in a second"),
        column("dispersion", REAL, "",
            "variance over mean of the arrivals per second (index of dispersion): 1 for"
            " Poisson arrivals", least=0),
        column("requests", WHOLE, "requests", "requests without the unsent ones", null=True),
        column("effective_requests", REAL, "requests", "number of independent requests with the"
               " same evidence (docs/explanation/verdict.md)"),
        column("errors", WHOLE, "requests", "requests that failed or timed out, or were not sent",
               null=True),
        column("sla_percentile", REAL, "%", "percentile that the SLA binds", null=False),
        column("sla_ms", REAL, "ms", "the SLA: latency at that percentile", null=False),
        column("attained", REAL, "share", "share of requests within the latency of the SLA"),
        column("attained_low", REAL, "share",
            "its 95 % interval, as for a verdict (docs/explanation/verdict.md), lower end"),
        column("attained_high", REAL, "share", "upper end"),
        column("p50_ms", REAL, "ms", "median latency from the intended send"),
        column("p95_ms", REAL, "ms", "95th percentile of the latency"),
        column("p99_ms", REAL, "ms", "99th percentile of the latency"),
        column("worst_minute_start_s", WHOLE, "s",
            "start of the worst minute since the start of the window: the 60 s with"
            " the lowest attainment, or the whole of a shorter window", null=True),
        column("worst_minute_requests", WHOLE, "requests",
            "requests with an intended send time in that minute", null=True),
        column("worst_minute_attained", REAL, "share",
            "share of these requests within the latency of the SLA"),
        column("bursts", WHOLE, "", "bursts of its arrivals (docs/explanation/replay.md)",
               null=True),
        column("worst_recovery_s", REAL, "s",
            "longest time from the end of a burst until the server had recovered; infinite if it"
            " had not recovered at the end of the window"),
        column("most_in_flight", WHOLE, "requests",
            "largest number of requests past their intended send time without a"
            " response", null=True),
        column("lag_p50_ms", REAL, "ms", "median of the send lag (sent - intended)"),
        column("lag_p99_ms", REAL, "ms", "its 99th percentile"),
        column("lag_max_ms", REAL, "ms", "its maximum"),
        column("punctual", REAL, "share",
            "share of requests that were sent within 1 ms of their intended send time"),
        column("unsent", WHOLE, "requests", "requests that were never sent", null=True),
        column("client_cpu", REAL, "cores", "CPU time of the client over the wall time"),
        column("verdict", TEXT, "", "ok, sla_missed, client_limited, disturbed, failed, blocked, or"
               " infeasible (a grid's setting without a model)",
               choices=(*ReplayVerdict, "failed", "blocked", "infeasible")),
        column("reason", TEXT, "", "why the verdict is not ok"),
    ],
    key=("cell", "tenant", "phase"),
    holds=[
        ascending("attained_low", "attained", "attained_high"),
        ascending("p50_ms", "p95_ms", "p99_ms"),
        ascending("lag_p50_ms", "lag_p99_ms", "lag_max_ms"),
    ],
)  # fmt: skip
"""Columns of a phase are null if the phase was not measured."""

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
    """Return the columns of a phase that are known before its measurement, with the verdict if it
    was not measured."""
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
