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
        column("window", pa.int32(), "", "number of the window in the cell, counted from 0"),
        column("tenant", _NAME, "", "name of the tenant"),
        column("intended_ns", pa.int64(), "ns", "intended send time, monotonic clock"),
        column("sent_ns", pa.int64(), "ns", "actual send time; 0 if the request was not sent"),
        column("done_ns", pa.int64(), "ns", "time of the response or error; 0 without a response"),
        column("status", _NAME, "", "outcome: pending, ok, timeout, refused, error or unsent"),
    ]
)

_BOUND = "one-sided bound of exceedance at the confidence of the verdict"
_METHOD = "(docs/explanation/verdict.md)"
_TRITON = "of an answered request, from Triton's counters"

WINDOWS_SCHEMA = pa.schema(
    [
        column("attempt", WHOLE, "",
            "attempt at the cell, counted from 1; record.json names the attempt that counts"),
        column("window", pa.int32(), "", "number of the window in the cell, counted from 0"),
        column("phase", TEXT, "",
            "purpose of the window. In a search: warm_up, bracket, bisect, near_limit, certify,"
            " probe, alone; in closed loops: concurrency, aa; for pairs: warm_up, slowdown; in"
            " replays: warm_up, shared, alone; in a soak test: soak; in a catalogue: full"
            " (saturated server), within (load within an SLA)"),
        column("scale", REAL, "",
            "load factor s: the offered rates are base + s x direction, with one value per tenant;"
            " in a closed loop, requests in flight of each tenant; in phase within, rate in"
            " requests/s"),
        column("elapsed_s", REAL, "s", "time from the start of the window to its verdict"),
        column("settle_s", REAL, "s", "settling time at the start, in which requests do not count"),
        column("start_ns", pa.int64(), "ns", "start of the window, monotonic clock"),
        column("window_verdict", TEXT, "", "verdict on the window: the worst verdict of all"
                                           " tenants"),
        column("tenant", TEXT, "", "name of the tenant"),
        column("offered_rps", REAL, "requests/s", "offered rate of the tenant; in a closed loop,"
               " its throughput"),
        column("requests", WHOLE, "requests", "number of counted requests; requests that the"
                                              " client dropped do not count"),
        column("effective_requests", REAL, "requests", "number of independent requests that would"
                                                       " be as strong evidence as the counted"
                                                       " requests with their correlated latencies "
               + _METHOD),
        column("batches", WHOLE, "batches",
            "number of batches from which the interval of the exceedance is computed (batch means) "
               + _METHOD),
        column("errors", WHOLE, "requests",
            "requests without a valid response: sum of timeouts, refused, failed and unsent"),
        column("timeouts", WHOLE, "requests", "requests without a response in time"),
        column("refused", WHOLE, "requests", "requests that the server refused"),
        column("failed", WHOLE, "requests", "requests with another error as response"),
        column("unsent", WHOLE, "requests", "requests that the client dropped because too many"
                                            " were in flight"),
        column("p50_ms", REAL, "ms", "median latency, from the intended send time"),
        column("p95_ms", REAL, "ms", "95th percentile of the latency"),
        column("p95_low_ms", REAL, "ms", "lower end of the 95 % interval of p95_ms"),
        column("p95_high_ms", REAL, "ms", "upper end of the 95 % interval of p95_ms; infinite if"
                                          " there are too few requests"),
        column("p99_ms", REAL, "ms", "99th percentile of the latency"),
        column("sla_percentile_ms", REAL, "ms", "latency at the percentile of the SLA"),
        column("sla_ms", REAL, "ms", "latency that the SLA allows at its percentile"),
        column("service_p50_ms", REAL, "ms", "median time from the actual send to the response"),
        column("exceedance", REAL, "share",
            "exceedance: share of late requests, errors included"),
        column("exceedance_low", REAL, "share", "lower " + _BOUND),
        column("exceedance_high", REAL, "share", "upper " + _BOUND),
        column("completed_ratio", REAL, "share",
            "share of the counted requests that were answered by the end of the window"),
        column("backlog_growth_rps", REAL, "requests/s",
            "growth of the number of requests in flight " + _METHOD),
        column("send_lag_p99_ms", REAL, "ms", "99th percentile of actual minus intended send time"),
        column("client_cpu", REAL, "cores", "CPU time per second of the tenant's busiest client"
                                            " process, or, if larger, CPU time per second and"
                                            " client core of all clients"),
        column("other_cpu_share", REAL, "0..1", "share of the server's cores that other processes"
               " used; null if the server's processes are not visible, for example on another"
               " host"),
        column("other_process", TEXT, "", "the other process that used the server's cores most;"
               " empty if no visible process used more than 10 % of a core"),
        column("other_gpu_share", REAL, "0..1", "share of the time in which a GPU of the server"
               " worked for other processes; with several GPUs, the largest share; null without"
               " GPUs, or if NVML does not report it"),
        column("slowed", REAL, "times", "largest temporary slowdown of the busy server relative to"
               " its usual speed, as a factor; only in windows near the limit; 1 without a"
               " significant slowdown"),
        column("verdict", TEXT, "", "verdict on the tenant: pass, fail, undecided or invalid"),
        column("reason", TEXT, "", "reason of the verdict"),
        column("queue_ms", REAL, "ms", "mean time in the server's queue " + _TRITON),
        column("compute_input_ms", REAL, "ms", "mean time to prepare the inputs " + _TRITON),
        column("compute_ms", REAL, "ms", "mean time to compute the model " + _TRITON),
        column("compute_output_ms", REAL, "ms", "mean time to prepare the outputs " + _TRITON),
        column("client_ms", REAL, "ms", "mean latency minus queue_ms, compute_input_ms,"
                                        " compute_ms and compute_output_ms: transport and client"),
        column("client_cpu_ms", REAL, "ms", "CPU time of the tenant's client per answered"
               " request, from the start of the window until the server is idle again; null if no"
               " request was answered"),
        column("server_cpu_ms", REAL, "ms", "CPU time of the server from the start of the window"
                                            " until the server is idle again, divided by the"
                                            " answered requests of all tenants; null if no request"
                                            " was"
               " answered or the server runs on another host"),
    ]
)  # fmt: skip


def write_windows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    with whole(path) as partial:
        pq.write_table(pa.Table.from_pylist(list(rows), schema=WINDOWS_SCHEMA), partial)


class RequestsWriter:
    """Context manager that writes one row group per window, so that only the requests of one window
    use memory."""

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
