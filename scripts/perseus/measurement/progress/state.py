"""Describe the state of a measurement, for the terminal and the exporter to Prometheus."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perseus.host.identity import identity
from perseus.peak.verdict import Verdict
from perseus.study.base import Part
from perseus.study.tasks.measure import MeasuredTenant, MeasureTask


class TenantProgress(Part):
    """The state of a tenant in the last window. Unknown values are None.

    `percentile` is the percentile of the SLA, and `latency_ms` is the latency at this percentile.
    `sla_ms` is the latency limit of the SLA in the last window; before the first window, it is the
    configured limit. `answered_rps` is the rate of responses. `send_lag_ms` is the 99th percentile
    of the send lag, and `send_lag_limit_ms` is its largest allowed value. Over all windows of the
    attempt, `passed_rps` is the highest offered rate of a window that passed, and `failed_rps` is
    the lowest offered rate of a window that failed.
    """

    name: str
    percentile: float
    sla_ms: float
    offered_rps: float | None = None
    answered_rps: float | None = None
    latency_ms: float | None = None
    send_lag_ms: float | None = None
    send_lag_limit_ms: float | None = None
    verdict: str | None = None
    passed_rps: float | None = None
    failed_rps: float | None = None


class Progress(Part):
    """The state of one attempt to measure a cell. Times are on the Unix clock, in seconds.

    `process` identifies the measuring process. `told_s` is the time of this report, and `end_s` is
    the estimated end of the cell. `metrics_url` is the address of the server's metrics. It is None
    if no server runs, or if the metrics need a token or a certificate of the study. `phase` is the
    phase of the last ended window. `windows` contains the number of ended windows by verdict.
    `text` describes the last window.
    """

    process: str
    study: str
    cell: str
    server: str
    kind: str
    attempt: int
    told_s: float
    end_s: float | None
    metrics_url: str | None
    phase: str | None
    windows: dict[str, int]
    tenants: tuple[TenantProgress, ...]
    text: str = ""

    @classmethod
    def of(
        cls,
        task: MeasureTask,
        attempt: int,
        rows: Sequence[Mapping[str, Any]],
        metrics_url: str | None,
        seconds_left: float | None,
        text: str = "",
    ) -> Progress:
        """Compute the state from the rows of windows.parquet.

        `seconds_left` is the estimated remaining time of the cell in seconds.
        """
        own = [row for row in rows if row["attempt"] == attempt]
        last = {row["tenant"]: row for row in own if row["window"] == own[-1]["window"]}
        verdicts = {row["window"]: str(row["window_verdict"]) for row in own}
        now_s = time.time()
        return cls(
            process=identity(),
            study=task.study,
            cell=task.cell,
            server=task.server.name,
            kind=task.run.kind,
            attempt=attempt,
            told_s=now_s,
            end_s=None if seconds_left is None else now_s + seconds_left,
            metrics_url=metrics_url,
            phase=str(own[-1]["phase"]) if own else None,
            windows=Counter(verdicts.values()),
            tenants=tuple(_of_tenant(each, last.get(each.name), own) for each in task.tenants),
            text=text,
        )


OnProgress = Callable[[Progress], None]


def ignored(progress: Progress) -> None:
    """Ignore the progress of a measurement."""


def _of_tenant(
    tenant: MeasuredTenant, row: Mapping[str, Any] | None, rows: Sequence[Mapping[str, Any]]
) -> TenantProgress:
    """Return the state of a tenant.

    `row` is the tenant's row for the last window. `rows` contains the rows of all tenants for all
    windows of the attempt.
    """
    seen = _seen(row) if row else {"sla_ms": tenant.sla.latency_ms}
    return TenantProgress(
        name=tenant.name,
        percentile=tenant.sla.percentile,
        passed_rps=max(_offered_rps(tenant, rows, Verdict.PASS), default=None),
        failed_rps=min(_offered_rps(tenant, rows, Verdict.FAIL), default=None),
        **seen,
    )


def _offered_rps(
    tenant: MeasuredTenant, rows: Sequence[Mapping[str, Any]], verdict: Verdict
) -> list[float]:
    return [
        float(row["offered_rps"])
        for row in rows
        if row["tenant"] == tenant.name
        and row["window_verdict"] == verdict
        and 0 < row["offered_rps"] < math.inf
    ]


def _seen(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "sla_ms": float(row["sla_ms"]),  # in a catalogue, the windows have different SLAs
        "offered_rps": _finite(row["offered_rps"]),
        "answered_rps": _finite(row["offered_rps"] * row["completed_ratio"]),
        "latency_ms": _finite(row["sla_percentile_ms"]),
        "send_lag_ms": _finite(row["send_lag_p99_ms"]),
        "send_lag_limit_ms": float(row["send_lag_limit_ms"]),
        "verdict": str(row["verdict"]),
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
