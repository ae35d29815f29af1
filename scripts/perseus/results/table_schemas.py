"""The columns of the four tables, with units and meanings (printed in docs/data.md)."""

from __future__ import annotations

import pyarrow as pa

from perseus.results.cost import DEMAND_SERVERS
from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE, column

_LINE = [
    column("study", TEXT, "", "name of the study"),
    column("server", TEXT, "", "name of the server in the configuration"),
    column("scenario", TEXT, "", "server and tenants: one Triton model repository"),
    column("load_line", TEXT, "", "name of the load line r(s) = base + s x direction"),
    column("kind", TEXT, "", "dedicated, mix (all rise in proportion) or hold (one stays)"),
    column("models", TEXT, "", "models of the tenants"),
    column(
        "mix", TEXT, "", "the load line in words; weights and percentages are of dedicated peaks"
    ),
    column(
        "verdict",
        TEXT,
        "",
        "the worst repeat's: ok, uncertified, infeasible, client_limited or failed",
    ),
    column("reason", TEXT, "", "why not ok, in words"),
]
_CI = "of the 95 % interval (hierarchical bootstrap over repeats and batches)"

PEAKS = pa.schema(
    [
        *_LINE,
        column("device", TEXT, "", "cpu or gpu"),
        column("runtime", TEXT, "", "what executes the networks inside Triton"),
        column("certified_rps", REAL, "requests/s", "highest total rate that passed fresh windows"
               " in every repeat"),
        column("estimate_rps", REAL, "requests/s", "most likely limit of the server, all tenants"
               " together, mean of the repeats"),
        column("ci_low_rps", REAL, "requests/s", f"estimate_rps: lower end {_CI}"),
        column("ci_high_rps", REAL, "requests/s", f"estimate_rps: upper end {_CI}"),
        column("cliff", TEXT, "", "where latency leaps to over twenty times within 25 % of load,"
               " from within the SLA to beyond it; empty where it does not"),
        column("first_failing_rps", REAL, "requests/s", "lowest total rate that failed above the"
               " certified one"),
        column("certified_scale", REAL, "", "certified_rps as point s of the load line"),
        column("estimate_scale", REAL, "", "estimate_rps as point s of the load line"),
        column("ci_low_scale", REAL, "", f"estimate_scale: lower end {_CI}"),
        column("ci_high_scale", REAL, "", f"estimate_scale: upper end {_CI}"),
        column("first_failing_scale", REAL, "", "first_failing_rps as point s of the load line"),
        column("sharing_ratio", REAL, "", "sum of rate / dedicated peak over the tenants, at the"
               " estimates: how many dedicated servers one shared server replaces"),
        column("sharing_ratio_low", REAL, "", f"sharing_ratio: lower end {_CI}"),
        column("sharing_ratio_high", REAL, "", f"sharing_ratio: upper end {_CI}"),
        column("certified_sharing_ratio", REAL, "", "the same from certified rates only"),
        column("client_load", REAL, "", "sum of rate / ceiling of the client over the tenants, at"
               " the estimates: far below 1, the client was not what limited"),
        column("repeats", WHOLE, "", "repeats measured"),
        column("repeats_used", WHOLE, "", "repeats that found a limit of the server; the estimate"
               " is their mean"),
        column("requests", WHOLE, "requests", "requests counted in all windows and repeats"),
        column("measured_s", REAL, "s", "length of all windows and repeats"),
    ]
)  # fmt: skip
"""One row per load line of a scenario; rates are totals over the tenants."""

TENANTS = pa.schema(
    [
        *_LINE,
        column("cell", TEXT, "", "folder of the raw results"),
        column("repeat", WHOLE, "", "repeat, counted from 1"),
        column("tenant", TEXT, "", "name of the tenant"),
        column("model", TEXT, "", "model of the tenant"),
        column("rate_rps", REAL, "requests/s", "rate at the certified point of this repeat"),
        column("estimate_rps", REAL, "requests/s", "rate at the estimated limit of this repeat"),
        column("base_rps", REAL, "requests/s", "base of the load line"),
        column("direction_rps", REAL, "requests/s", "direction of the load line, per unit of s"),
        column("dedicated_rps", REAL, "requests/s", "dedicated peak on the same server (estimate,"
               " mean of the repeats)"),
        column("requests", WHOLE, "requests", "requests of the last certified window"),
        column("effective_requests", REAL, "requests", "independent requests worth as much (M5)"),
        column("batches", WHOLE, "batches", "of the batch-means interval of the exceedance (M6)"),
        column("errors", WHOLE, "requests", "requests that failed or timed out"),
        column("p50_ms", REAL, "ms", "median latency from the intended send"),
        column("p95_ms", REAL, "ms", "95th percentile of the latency"),
        column("p95_low_ms", REAL, "ms", "its 95 % interval, lower end"),
        column("p95_high_ms", REAL, "ms", "upper end; infinite where requests do not bound it"),
        column("p99_ms", REAL, "ms", "99th percentile of the latency"),
        column("alone_p95_ms", REAL, "ms", "p95_ms of the tenant alone on the same server at the"
               " same rate; null in dedicated scenarios"),
        column("slowdown", REAL, "", "p95_ms / alone_p95_ms: what the other tenants cost it"),
        column("slowdown_low", REAL, "", "its 95 % interval, lower end (both p95 vary)"),
        column("slowdown_high", REAL, "", "upper end; infinite where requests do not bound it"),
        column("sla_percentile", REAL, "%", "percentile that the SLA binds"),
        column("sla_ms", REAL, "ms", "the SLA: latency at that percentile"),
        column("sla_percentile_ms", REAL, "ms", "measured latency at that percentile"),
        column("exceedance", REAL, "share", "requests over the SLA, errors among them"),
        column("exceedance_low", REAL, "share", "its lower one-sided bound at the confidence of"
               " the verdict"),
        column("exceedance_high", REAL, "share", "its upper bound, likewise"),
        column("queue_ms", REAL, "ms", "mean time in the server's queue"),
        column("compute_ms", REAL, "ms", "mean time of input, network and output in the server"),
        column("client_ms", REAL, "ms", "the rest of the mean latency: network and client"),
        column("unloaded_p50_ms", REAL, "ms", "median latency of single requests without load"),
        column("first_inference_ms", REAL, "ms", "the tenant's very first request"),
        column("startup_s", REAL, "s", "from the start of the server to all models ready"),
    ]
)  # fmt: skip
"""One row per tenant of each cell, at the certified point; nulls when nothing was certified."""

COSTS = pa.schema(
    [
        *_LINE,
        column("instance", TEXT, "", "cloud instance that the server stands for"),
        column("region", TEXT, "", "region of the price"),
        column("pricing", TEXT, "", "on_demand or spot"),
        column("usd_per_hour", REAL, "USD/h", "price of the instance"),
        column("usd_per_million_inferences", REAL, "USD", "a million inferences at the estimated"
               " limit, in the proportion of the mix"),
        column("ci_low_usd", REAL, "USD", f"usd_per_million_inferences: lower end {_CI}"),
        column("ci_high_usd", REAL, "USD", f"usd_per_million_inferences: upper end {_CI}"),
        column("usd_per_million_certified", REAL, "USD", "the same at the certified rate"),
        column("dedicated_usd_per_million", REAL, "USD", "the same million inferences on dedicated"
               " servers (fractions of servers allowed)"),
        column("joules_per_inference", REAL, "J", "energy of the server's GPUs (whole boards, idle"
               " power included; not of the host) for an inference, at the certified rate, mean of"
               " the repeats; null without GPUs"),
        column("price_source", TEXT, "", "where the price was read"),
    ]
)  # fmt: skip
"""One row per load line and pricing."""

SAVINGS = pa.schema(
    [
        *_LINE,
        column("sharing_ratio", REAL, "", "sum of rate / dedicated peak over the tenants"),
        column("saving", REAL, "share", "1 - 1 / sharing_ratio, of the cost of dedicated servers;"
               " negative: sharing costs more"),
        column("ci_low", REAL, "share", f"saving: lower end {_CI}"),
        column("ci_high", REAL, "share", f"saving: upper end {_CI}"),
        column("probability_of_saving", REAL, "", "share of the bootstrap draws with saving > 0"),
        column("ci_simultaneous_low", REAL, "share", "saving: lower end of the 95 % interval that"
               " holds for all lines of the scenario at once, so also for the best one"),
        column("ci_simultaneous_high", REAL, "share", "saving: its upper end"),
        column("lines_compared", WHOLE, "", "lines of the scenario that the correction covers"),
        column("demand", TEXT, "requests/s", "demand of the fleets below: what"
               f" {DEMAND_SERVERS} dedicated servers carry, in the proportion of the line"),
        column("dedicated_servers", WHOLE, "servers", "dedicated servers for the demand"),
        column("shared_servers", WHOLE, "servers", "servers for the demand when servers may run at"
               " any measured line of the scenario or be dedicated, packed optimally"),
        column("shared_fleet", TEXT, "", "how many servers run at which line"),
        column("fleet_saving", REAL, "share", "1 - shared_servers / dedicated_servers"),
        column("fleet_ci_low", REAL, "share", f"fleet_saving: lower end {_CI}"),
        column("fleet_ci_high", REAL, "share", f"fleet_saving: upper end {_CI}"),
    ]
)  # fmt: skip
"""One row per shared load line."""

CEILINGS = pa.schema(
    [
        column("server", TEXT, "", "name of the server in the configuration; the client had the"
               " cores that it leaves, and a null model was served on its cores"),
        column("models", TEXT, "", "models whose requests are of this size"),
        column("input_px", WHOLE, "pixels", "height and width of an image"),
        column("request_batch_size", WHOLE, "images", "images of a request"),
        column("request_bytes", WHOLE, "bytes", "input of a request"),
        column("protocol", TEXT, "", "grpc or http"),
        column("shared_memory", FLAG, "", "whether inputs lay in system shared memory"),
        column("client_cores", WHOLE, "cores", "cores of the client"),
        column("processes", WHOLE, "", "client processes"),
        column("ceiling_rps", REAL, "requests/s", "highest Poisson rate of one tenant at which a"
               " window was valid (M3)"),
        column("first_invalid_rps", REAL, "requests/s", "lowest rate above it that was not"),
        column("send_lag_p99_ms", REAL, "ms", "99th percentile of the send lag at the ceiling"),
        column("client_cpu", REAL, "cores", "CPU time of the client at the ceiling, of each core"),
        column("closed_loop_rps", REAL, "requests/s", "best rate of a closed loop"),
        column("closed_loop_concurrency", WHOLE, "requests", "requests in flight in that loop"),
        column("cpu_us_per_request", REAL, "us", "CPU time of the client per request there"),
    ]
)  # fmt: skip
"""One row per server and size of request."""

CONCURRENCY = pa.schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("server", TEXT, "", "name of the server in the configuration"),
        column("scenario", TEXT, "", "server and tenants: one Triton model repository"),
        column("cell", TEXT, "", "folder of the raw results"),
        column("repeat", WHOLE, "", "repeat, counted from 1"),
        column("tenant", TEXT, "", "name of the tenant"),
        column("model", TEXT, "", "model of the tenant"),
        column("concurrency", WHOLE, "requests", "requests in flight of each tenant"),
        column("answered_rps", REAL, "requests/s", "answers per second"),
        column("low_rps", REAL, "requests/s", "its 95 % interval by batch means, lower end"),
        column("high_rps", REAL, "requests/s", "upper end"),
        column("requests", WHOLE, "requests", "requests that count"),
        column("effective_requests", REAL, "requests", "independent requests worth as much (M5)"),
        column("batches", WHOLE, "batches", "of the batch-means intervals"),
        column("errors", WHOLE, "requests", "requests that failed or timed out"),
        column("p50_ms", REAL, "ms", "median latency from the send"),
        column("p95_ms", REAL, "ms", "95th percentile of the latency"),
        column("p95_low_ms", REAL, "ms", "its 95 % interval, lower end"),
        column("p95_high_ms", REAL, "ms", "upper end; infinite where requests do not bound it"),
        column("p99_ms", REAL, "ms", "99th percentile of the latency"),
        column("queue_ms", REAL, "ms", "mean time in the server's queue"),
        column("compute_ms", REAL, "ms", "mean time of input, network and output in the server"),
        column("client_ms", REAL, "ms", "the rest of the mean latency: network and client"),
        column("client_cpu", REAL, "cores", "CPU time of the client over the wall time"),
        column("valid", FLAG, "", "whether client and host let the server be what limited"),
        column("reason", TEXT, "", "why not, in words"),
    ]
)  # fmt: skip
"""One row per cell of a sweep, concurrency and tenant: closed loops, which no SLA is judged by."""

SCHEMAS = {
    "peaks": PEAKS,
    "tenants": TENANTS,
    "costs": COSTS,
    "savings": SAVINGS,
    "ceilings": CEILINGS,
    "concurrency": CONCURRENCY,
}
