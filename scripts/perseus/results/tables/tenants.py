"""Table `tenants`: each tenant at the certified rate of a cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.stats import Interval
from perseus.peak.window import Phase
from perseus.results.columns import LOAD_LINE, REPEATS, WINDOW, compute_ms, load_line, with_ends
from perseus.results.records import PeakRecord, Row, number
from perseus.results.repeats import Alone, RepeatedPeak, key
from perseus.results.schema import Schema, ascending, column
from perseus.results.slowdowns import ratio
from perseus.results.study_results import StudyResults

DESCRIPTION = "One row per cell and tenant, at the certified point."
SCHEMA = Schema(
    [
        *LOAD_LINE,
        column("cell", TEXT, "", "folder of the raw results"),
        column("repeat", WHOLE, "", "repeat, counted from 1", least=1),
        column("tenant", TEXT, "", "name of the tenant"),
        column("model", TEXT, "", "model of the tenant"),
        column("rate_rps", REAL, "requests/s", "rate at the certified point of this repeat"),
        column("estimate_rps", REAL, "requests/s", "rate at the estimated limit of this repeat"),
        column("ci_low_rps", REAL, "requests/s",
            "rate at the lower end of the interval of the load line, over all repeats"),
        column("ci_high_rps", REAL, "requests/s",
               "rate at the upper end of that interval", most=inf),
        column("base_rps", REAL, "requests/s", "base of the load line"),
        column("direction_rps", REAL, "requests/s", "direction of the load line, per unit of s"),
        column("dedicated_rps", REAL, "requests/s",
            "dedicated peak on the same server (estimate, mean of the repeats)"),
        column("requests", WHOLE, "requests", "requests of the last certified window", null=True),
        column("effective_requests", REAL, "requests", "number of independent requests with the"
               " same evidence (docs/explanation/verdict.md)"),
        column("batches", WHOLE, "batches",
            "number of batches of the batch-means interval of the exceedance"
            " (docs/explanation/verdict.md)", null=True),
        column("errors", WHOLE, "requests", "requests that failed, timed out, were refused or"
               " were not sent", null=True),
        column("p50_ms", REAL, "ms", "median latency from the intended send"),
        column("p95_ms", REAL, "ms", "95th percentile of the latency"),
        column("p95_low_ms", REAL, "ms", "lower end of the 95 % interval of the column above"),
        column("p95_high_ms", REAL, "ms", "upper end of that interval; infinite if the requests"
                                          " do not bound it"),
        column("p99_ms", REAL, "ms", "99th percentile of the latency"),
        column("alone_p95_ms", REAL, "ms", "p95_ms of the tenant alone on the same server at the"
               " same rate; null in dedicated scenarios"),
        column("slowdown", REAL, "", "p95_ms / alone_p95_ms: the slowdown by the other tenants",
               least=0),
        column("slowdown_low", REAL, "", "lower end of the 95 % interval of the column above"
                                         " (both p95 vary)", least=0),
        column("slowdown_high", REAL, "", "upper end of that interval; infinite if the requests"
                                          " do not bound it",
               least=0),
        column("sla_percentile", REAL, "%", "percentile that the SLA binds", null=False),
        column("sla_ms", REAL, "ms", "the SLA: latency at that percentile", null=False),
        column("sla_percentile_ms", REAL, "ms", "measured latency at that percentile"),
        column("exceedance", REAL, "share",
            "exceedance: share of requests over the SLA, errors included"),
        column("exceedance_low", REAL, "share", "its lower one-sided bound at the confidence of"
               " the verdict"),
        column("exceedance_high", REAL, "share", "its upper bound, likewise"),
        column("queue_ms", REAL, "ms", "mean time in the server's queue"),
        column("compute_ms", REAL, "ms", "mean time of input, network and output in the server"),
        column("client_ms", REAL, "ms", "rest of the mean latency: network and client"),
        column("unloaded_p50_ms", REAL, "ms", "median latency of single requests without load"),
        column("first_inference_ms", REAL, "ms", "latency of the tenant's very first request"),
        column("startup_s", REAL, "s", "from the start of the server to all models ready"),
        column("preprocessing", TEXT, "",
            "where images are converted into tensors: client"
            " (before windows) or server; empty if requests are"
            " tensors", choices=("", "client", "server")),
        column("request_bytes", REAL, "bytes", "input bytes of a request, mean"),
        column("client_cpu_ms", REAL, "ms", "CPU time of the tenant's client per request"),
        column("client_preprocess_ms", REAL, "ms",
            "CPU time in which the client converts images into the tensors of a request; not part"
            " of client_cpu_ms or of a latency"),
        column("server_cpu_ms", REAL, "ms", "CPU time of the server per request, mean over those of"
               " all tenants"),
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
"""Measured columns are null without a certified rate."""

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
        if row["phase"] == Phase.ALONE and row["offered_rps"] > 0
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
    """Return the rate of each tenant at a load factor, which may be infinite; tenants at fixed
    rates keep their rates."""
    line = zip(record.line.base_rps, record.line.direction_rps, strict=True)
    return [base + scale * more if more else base for base, more in line]


def _slowdown(shared: Row, alone: Row) -> Row:
    """Return p95 shared / p95 alone at an equal rate."""
    of_shared, of_alone = (
        Interval(*(number(row.get(name)) for name in ("p95_ms", "p95_low_ms", "p95_high_ms")))
        for row in (shared, alone)
    )
    found = ratio(of_shared, of_alone)
    return {
        "alone_p95_ms": of_alone.value,
        **with_ends("slowdown", found, ("slowdown_low", "slowdown_high")),
    }
