"""Write the raw results of a cell as Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from perseus.host.files import whole
from perseus.host.parquet import REAL, TEXT, WHOLE, column
from perseus.traffic.requests import Requests, Status

_NAME = pa.dictionary(pa.int32(), pa.string())

REQUESTS_SCHEMA = pa.schema(
    [
        column("window", pa.int32(), "", "index of the window in the cell, starting at 0"),
        column("tenant", _NAME, "", "name of the tenant"),
        column(
            "intended_ns",
            pa.int64(),
            "ns",
            "intended send time of the request, on the monotonic clock",
        ),
        column(
            "sent_ns",
            pa.int64(),
            "ns",
            "actual send time on the monotonic clock, or 0 if the request was not sent",
        ),
        column(
            "done_ns",
            pa.int64(),
            "ns",
            "time on the monotonic clock at which the request ended by a response, an error or a"
            " timeout; 0 if the request ended in none of these ways",
        ),
        column(
            "status",
            _NAME,
            "",
            "outcome of the request: ok, timeout, refused, error, unsent (dropped by the client) or"
            " pending (no outcome when the window ended)",
        ),
    ]
)

_BOUND = "confidence bound of `exceedance`, at the confidence level that the verdict requires"
_METHOD = "(docs/explanation/verdict.md)"
_TRITON = ", from Triton's counters"

WINDOWS_SCHEMA = pa.schema(
    [
        column("attempt", WHOLE, "",
            "number of the attempt to measure the cell, counted from 1. The key `attempt` of"
            " record.json states from which attempt the results of the cell come."),
        column("window", pa.int32(), "", "index of the window in the cell, starting at 0"),
        column("phase", TEXT, "",
            "purpose of the window. In a search (docs/explanation/search.md): warm_up, bracket,"
            " bisect, near_limit, certify, probe (saturation probe), alone (one tenant without the"
            " other tenants, at its certified rate, or at 82 % of its estimate if no rate is"
            " certified). In experiments with closed loops: concurrency, aa (comparison of several"
            " starts of the same server). In a slowdown experiment: warm_up, slowdown. In a replay:"
            " warm_up, shared (all tenants), alone (one tenant). In a soak test: soak. In a"
            " catalogue: full (saturated server), within (rate at which the server should keep the"
            " SLA)."),
        column("scale", REAL, "",
            "load factor s of the window: each tenant has the rate base + s x direction (key `line`"
            " of record.json). In a closed loop outside a search, `scale` is the number of requests"
            " that each tenant keeps in flight. In the phase `within`, `scale` is the rate in"
            " requests/s. In all other windows that are not on a load line, such as warm_up and"
            " probe in a search, `scale` is NaN."),
        column("elapsed_s", REAL, "s", "time from the start of the window to its verdict"),
        column("settle_s", REAL, "s",
            "settling time: length of the first part of the window. Requests of this part do not"
            " count for the verdict."),
        column("start_ns", pa.int64(), "ns", "start of the window, on the monotonic clock"),
        column("window_verdict", TEXT, "",
            "worst verdict of all tenants in the window (from worst to best: fail, invalid,"
            " undecided, pass)"),
        column("tenant", TEXT, "", "name of the tenant"),
        column("offered_rps", REAL, "requests/s",
            "offered rate of the tenant. In a closed loop: throughput of the tenant."),
        column("requests", WHOLE, "requests",
            "number of the tenant's requests that count for the verdict, without the requests that"
            " the client dropped"),
        column("effective_requests", REAL, "requests",
            "effective sample size: at most `requests`, because the latencies of successive"
            " requests are correlated " + _METHOD),
        column("batches", WHOLE, "batches",
            "number of batches (groups of consecutive requests) from which the bounds of"
            " `exceedance` are computed " + _METHOD),
        column("errors", WHOLE, "requests",
            "number of requests without a valid response: the sum of the columns `timeouts`,"
            " `refused`, `failed` and `unsent`"),
        column("timeouts", WHOLE, "requests",
            "number of requests that got no response before their timeout"),
        column("refused", WHOLE, "requests", "number of requests that the server refused"),
        column("failed", WHOLE, "requests",
            "number of requests that got an error response other than a refusal"),
        column("unsent", WHOLE, "requests",
            "number of requests that the client did not send, because too many requests were in"
            " flight"),
        column("p50_ms", REAL, "ms",
            "median latency, measured from the intended send time"),
        column("p95_ms", REAL, "ms", "95th percentile of the latency"),
        column("p95_low_ms", REAL, "ms", "lower end of the 95 % interval of `p95_ms`"),
        column("p95_high_ms", REAL, "ms",
            "upper end of the 95 % interval of `p95_ms`. Infinite if there are too few requests for"
            " an upper bound."),
        column("p99_ms", REAL, "ms", "99th percentile of the latency"),
        column("sla_percentile_ms", REAL, "ms",
            "measured latency at the percentile of the SLA, for example p95"),
        column("sla_ms", REAL, "ms", "latency limit of the SLA"),
        column("service_p50_ms", REAL, "ms",
            "median time from the actual send time of a request to its response"),
        column("exceedance", REAL, "share",
            "share of late requests: requests that took longer than `sla_ms` or failed"),
        column("exceedance_low", REAL, "share", "one-sided lower " + _BOUND),
        column("exceedance_high", REAL, "share", "one-sided upper " + _BOUND),
        column("completed_ratio", REAL, "share",
            "share of the counted requests (column `requests`) that got a valid response by the end"
            " of the window"),
        column("backlog_growth_rps", REAL, "requests/s",
            "by how much the number of requests in flight increases per second, because the server"
            " answers fewer requests than the client sends " + _METHOD),
        column("send_lag_p99_ms", REAL, "ms",
            "99th percentile of the send lag (actual minus intended send time)"),
        column("send_lag_limit_ms", REAL, "ms",
            "largest allowed 99th percentile of the send lag in this window"
            " (docs/explanation/load.md)"),
        column("client_cpu", REAL, "cores",
            "CPU load of the client: the larger of two values. The first value is the CPU time per"
            " second of the tenant's busiest client process. The second value is the CPU time per"
            " second of all clients together, divided by the number of client cores."),
        column("other_cpu_share", REAL, "0..1",
            "share of the CPU time of the server's cores that other processes used in the window."
            " Null if the server's processes are not visible, for example on another host."),
        column("other_process", TEXT, "",
            "name and id of the busiest process (except the server's processes) that may run on the"
            " server's cores. Empty if no visible process used more than 10 % of a core."),
        column("other_gpu_share", REAL, "0..1",
            "share of the time in which a GPU of the server worked for other processes. With"
            " several GPUs: the largest share. Null without GPUs, or if NVML does not"
            " report the share."),
        column("slowed", REAL, "times",
            "factor by which the server was slower than usual at full load, during the largest"
            " temporary slowdown in the window. The factor is 1 if no slowdown is statistically"
            " significant. In all phases except bracket, bisect and near_limit, the factor is"
            " always 1."),
        column("verdict", TEXT, "",
            "verdict on the tenant in this window: pass, fail, undecided or invalid"),
        column("reason", TEXT, "", "reason for the verdict"),
        column("queue_ms", REAL, "ms",
            "mean time that an answered request waits in the server's queue" + _TRITON),
        column("compute_input_ms", REAL, "ms",
            "mean time to prepare the inputs of an answered request" + _TRITON),
        column("compute_ms", REAL, "ms",
            "mean time to run the model for an answered request" + _TRITON),
        column("compute_output_ms", REAL, "ms",
            "mean time to prepare the outputs of an answered request" + _TRITON),
        column("client_ms", REAL, "ms",
            "mean time of a request in transport and in the client: mean latency minus queue_ms,"
            " compute_input_ms, compute_ms and compute_output_ms"),
        column("client_cpu_ms", REAL, "ms",
            "CPU time of the tenant's client divided by the number of the tenant's answered"
            " requests. The CPU time counts from the start of the window until the server is idle"
            " again. Null if no request was answered."),
        column("server_cpu_ms", REAL, "ms",
            "CPU time of the server divided by the number of answered requests of all tenants. The"
            " CPU time counts from the start of the window until the server is idle again. Null if"
            " no request was answered or the server runs on another host."),
    ]
)  # fmt: skip


def write_windows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with whole(path) as partial:
        pq.write_table(pa.Table.from_pylist(list(rows), schema=WINDOWS_SCHEMA), partial)


class RequestsWriter:
    """Context manager that writes requests.parquet, with one row group per window.

    Therefore only the requests of one window are in memory at the same time.
    """

    def __init__(self, path: Path) -> None:
        self._whole = whole(path)
        self.windows = 0
        """Number of written windows, which is also the number of the next window."""

    def __enter__(self) -> RequestsWriter:
        self._writer = pq.ParquetWriter(
            self._whole.__enter__(), REQUESTS_SCHEMA, compression="zstd"
        )
        return self

    def __exit__(self, *exc: Any) -> None:
        self._writer.close()
        self._whole.__exit__(*exc)

    def add(self, tenants: Sequence[str], requests: Sequence[Requests]) -> int:
        """Write the requests of the next window, and return its number, counted from 0."""
        number = self.windows
        parts = [_table(number, *pair) for pair in zip(tenants, requests, strict=True)]
        self._writer.write_table(pa.concat_tables(parts).unify_dictionaries())
        self.windows += 1
        return number


def _table(window: int, tenant: str, requests: Requests) -> pa.Table:
    n = len(requests)
    statuses = pa.array([status.name.lower() for status in Status])
    columns = [
        pa.array([window] * n, pa.int32()),
        pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([tenant])),
        pa.array(requests.intended_ns),
        pa.array(requests.sent_ns),
        pa.array(requests.done_ns),
        pa.DictionaryArray.from_arrays(pa.array(requests.status.astype("int32")), statuses),
    ]
    return pa.table(columns, schema=REQUESTS_SCHEMA)
