"""Make the table `tenants`: the results of each tenant at the certified rate of each repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.stats import Interval
from perseus.peak.verdict import Verdict
from perseus.peak.window import Phase
from perseus.results.columns import (
    CELL_NAME,
    EFFECTIVE_REQUESTS,
    LOAD_LINE,
    REPEATS,
    WINDOW,
    compute_ms,
    load_line,
    with_ends,
)
from perseus.results.records import PeakRecord, Row, number
from perseus.results.repeats import Alone, RepeatedPeak, key
from perseus.results.schema import Schema, ascending, column
from perseus.results.slowdowns import ratio
from perseus.results.study_results import StudyResults

DESCRIPTION = (
    "One row per cell and tenant. Unless a description says otherwise, the measured values come"
    " from the last certification window that passed, and are null without a certified rate."
)
SCHEMA = Schema(
    [
        *LOAD_LINE,
        column("cell", TEXT, "", CELL_NAME),
        column("repeat", WHOLE, "", "index of the repeat, starting at 1", least=1),
        column("tenant", TEXT, "", "name of the tenant"),
        column("model", TEXT, "", "name of the tenant's model"),
        column("rate_rps", REAL, "requests/s", "certified rate of the tenant in this repeat"),
        column("estimate_rps", REAL, "requests/s",
            "rate of the tenant at the estimated peak of this repeat"),
        column("ci_low_rps", REAL, "requests/s",
            "rate of the tenant at the lower end of the 95 % interval of the peak. Perseus"
            " computes this interval from all repeats."),
        column("ci_high_rps", REAL, "requests/s",
               "rate of the tenant at the upper end of the 95 % interval of the peak. Perseus"
               " computes this interval from all repeats.", most=inf),
        column("base_rps", REAL, "requests/s",
            "rate of the tenant at load factor s = 0 of the load line. At load factor s, the rate"
            " is base_rps + s x direction_rps."),
        column("direction_rps", REAL, "requests/s",
            "increase of the tenant's rate per unit of the load factor s. At load factor s, the"
            " rate is base_rps + s x direction_rps."),
        column("dedicated_rps", REAL, "requests/s",
            "estimated dedicated peak of the tenant on the same server: the mean over its repeats"),
        column("requests", WHOLE, "requests",
            "number of the tenant's requests in the last window that certified the rate, without"
            " the requests in the settling time", null=True),
        column("effective_requests", REAL, "requests", EFFECTIVE_REQUESTS),
        column("batches", WHOLE, "batches",
            "number of batches (groups of consecutive requests) from which Perseus computes the"
            " bounds of `exceedance` (docs/explanation/verdict.md)", null=True),
        column("errors", WHOLE, "requests",
            "number of requests that failed, timed out, were refused or were not sent", null=True),
        column("p50_ms", REAL, "ms",
            "median latency, measured from the intended send time"),
        column("p95_ms", REAL, "ms", "95th percentile of the latency"),
        column("p95_low_ms", REAL, "ms", "lower end of the 95 % interval of `p95_ms`"),
        column("p95_high_ms", REAL, "ms",
            "upper end of the 95 % interval of `p95_ms`. Infinite if there are too few requests for"
            " an upper bound."),
        column("p99_ms", REAL, "ms", "99th percentile of the latency"),
        column("alone_p95_ms", REAL, "ms",
            "95th percentile of the latency of the tenant at the same rate on the same server,"
            " while the other tenants have no load. Null in dedicated scenarios."),
        column("slowdown", REAL, "", "slowdown that the other tenants cause: p95_ms / alone_p95_ms",
               least=0),
        column("slowdown_low", REAL, "",
            "lower end of the 95 % interval of `slowdown`, computed from the intervals of p95_ms"
            " and alone_p95_ms", least=0),
        column("slowdown_high", REAL, "",
            "upper end of the 95 % interval of `slowdown`. Infinite if there are too few requests"
            " for an upper bound.",
               least=0),
        column("sla_percentile", REAL, "%",
            "percentile of the latency for which the SLA sets a limit, such as 95 for p95",
               null=False),
        column("sla_ms", REAL, "ms",
            "latency limit of the SLA: at least `sla_percentile` % of the requests must have at"
            " most this latency", null=False),
        column("sla_percentile_ms", REAL, "ms",
            "measured latency at the percentile `sla_percentile`"),
        column("exceedance", REAL, "share",
            "share of late requests: requests that took longer than `sla_ms` or failed"),
        column("exceedance_low", REAL, "share",
            "one-sided lower confidence bound of `exceedance`, at the confidence that the preset"
            " sets for verdicts"),
        column("exceedance_high", REAL, "share",
            "one-sided upper confidence bound of `exceedance`, at the confidence that the preset"
            " sets for verdicts"),
        column("queue_ms", REAL, "ms", "mean time that a request waits in the queue of the server"),
        column("compute_ms", REAL, "ms",
            "mean time that the server works on a request: preparation of the inputs, inference,"
            " and preparation of the outputs"),
        column("client_ms", REAL, "ms",
            "mean time of a request in transport and in the client: mean latency minus queue_ms and"
            " compute_ms"),
        column("unloaded_p50_ms", REAL, "ms",
            "median latency of requests that the client sends one after another, without other"
            " load"),
        column("first_inference_ms", REAL, "ms",
            "latency of Perseus's first request to the tenant after the start of the server"),
        column("startup_s", REAL, "s",
            "time from the start of the server until all models are ready. For a remote server, the"
            " time to load the models."),
        column("preprocessing", TEXT, "",
            "program that converts images into tensors: client (before the window starts) or"
            " server. Empty if neither converts images.", choices=("", "client", "server")),
        column("request_bytes", REAL, "bytes",
            "mean size of the inputs in one request of the tenant"),
        column("client_cpu_ms", REAL, "ms",
            "mean CPU time of the client per request of this tenant"),
        column("client_preprocess_ms", REAL, "ms",
            "CPU time that the client needs to convert images into the tensors of a request. This"
            " time is not part of client_cpu_ms or of any latency."),
        column("server_cpu_ms", REAL, "ms",
            "mean CPU time of the server per request, over the requests of all tenants"),
    ],
    key=("cell", "tenant"),
    holds=[
        *REPEATS,
        ascending("p50_ms", "p95_ms", "p99_ms"),
        ascending("p95_low_ms", "p95_ms", "p95_high_ms"),
        ascending("ci_low_rps", "ci_high_rps"),
        ascending("slowdown_low", "slowdown", "slowdown_high"),
        ascending("exceedance_low", "exceedance", "exceedance_high"),
        ascending("sla_percentile_ms", "sla_ms"),
    ],
)  # fmt: skip
"""Schema of the table. Columns that come from a certification window are null if the cell has no
certified rate."""

OF_SLA = ("sla_percentile_ms", "exceedance", "exceedance_low", "exceedance_high")


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.searches:
        peak = results.peaks[key(record.task)]
        windows = results.certified_windows[record.folder]
        yield from _of_cell(record, windows, peak, results.alone(peak))


def _of_cell(
    record: PeakRecord, windows: Sequence[Row], peak: RepeatedPeak, dedicated: Alone
) -> Iterator[Row]:
    together = {row["tenant"]: row for row in windows if row["phase"] != Phase.ALONE}
    alone = {
        row["tenant"]: row
        for row in windows
        if row["phase"] == Phase.ALONE
        and row["offered_rps"] > 0
        and row["window_verdict"] != Verdict.INVALID
    }
    rates = record.rates_rps(record.certified_scale)
    estimates = record.rates_rps(
        peak.correction * record.estimate_scale if record.has_limit else np.nan
    )
    limit = peak.point.interval()
    lowest, highest = (_rates_rps(record, end) for end in (limit.low, limit.high))
    for i, tenant in enumerate(record.task.tenants):
        seen, by_itself = together.get(tenant.name, {}), dedicated[i]
        yield {
            **load_line(peak),
            "verdict": record.outcome,
            "reason": record.reason,
            "cell": record.task.cell,
            "repeat": record.task.repeat,
            "tenant": tenant.name,
            "model": tenant.model,
            "rate_rps": float(rates[i]),
            "estimate_rps": float(estimates[i]),
            "ci_low_rps": lowest[i],
            "ci_high_rps": highest[i],
            "base_rps": record.line.base_rps[i],
            "direction_rps": record.line.direction_rps[i],
            "dedicated_rps": np.nan if by_itself is None else float(by_itself.rates_rps[0]),
            "sla_percentile": tenant.sla.percentile,
            "sla_ms": tenant.sla.latency_ms,
            **{name: seen.get(name) for name in (*WINDOW, *OF_SLA)},
            "compute_ms": compute_ms(seen),
            **_slowdown(seen, alone.get(tenant.name, {})),
            "unloaded_p50_ms": record.unloaded_p50_ms.get(tenant.name),
            "first_inference_ms": record.first_inference_ms.get(tenant.name),
            "startup_s": record.startup_s,
            "preprocessing": tenant.preprocessing or "",
            "request_bytes": record.request_bytes.get(tenant.name),
            "client_cpu_ms": seen.get("client_cpu_ms"),
            "client_preprocess_ms": record.client_preprocess_ms.get(tenant.name),
            "server_cpu_ms": seen.get("server_cpu_ms"),
        }


def _rates_rps(record: PeakRecord, scale: float) -> list[float]:
    """Return the rate of each tenant in requests/s at the load factor `scale`.

    If `scale` is infinite, the rate is infinite, except for tenants with a constant rate.
    """
    line = zip(record.line.base_rps, record.line.direction_rps, strict=True)
    return [base + scale * more if more else base for base, more in line]


def _slowdown(shared: Row, alone: Row) -> Row:
    """Return a tenant's columns `alone_p95_ms`, `slowdown`, `slowdown_low` and `slowdown_high`.

    `shared` is the tenant's row of windows.parquet for the window in which all tenants have load.
    `alone` is its row for the window in which only this tenant has load.
    """
    of_shared, of_alone = (
        Interval(*(number(row.get(name)) for name in ("p95_ms", "p95_low_ms", "p95_high_ms")))
        for row in (shared, alone)
    )
    found = ratio(of_shared, of_alone)
    return {
        "alone_p95_ms": of_alone.value,
        **with_ends("slowdown", found, ("slowdown_low", "slowdown_high")),
    }
