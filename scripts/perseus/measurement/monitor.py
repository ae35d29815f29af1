"""Sample the host, the server and Triton's counters once a second while a cell is measured.

    with Monitor(path, server.metrics_url, server.pid, server_cores=[0], client_cores=[1]):
        measure()

Rows are long: one value of one metric at one time, for one tenant where the metric has one. A value
that cannot be had (the server has died, a scrape timed out) has no row; it never ends the
measurement.
"""

from __future__ import annotations

import http.client
import math
import os
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlsplit

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from prometheus_client.parser import text_string_to_metric_families

from perseus.host import gpu
from perseus.host.procfs import (
    PAGE_BYTES,
    TICKS_PER_S,
    Process,
    busy_shares,
    core_ticks,
    network_bytes,
    process_table,
    start_ticks,
    tree,
)
from perseus.host.signals import signals_deferred
from perseus.serving.access import PLAIN, Access, read_within

METRICS = {
    "server_cpu_cores": "CPU cores used by the server and its stubs since the previous sample",
    "server_rss_bytes": "bytes; resident sets of the server's processes summed, so that pages they "
    "share (libraries, shared-memory regions) count once for each process",
    "client_cpu_cores": "CPU cores used by the measuring process and its children, the server's "
    "processes excepted, since the previous sample",
    "server_cores_busy": "mean busy share (0..1) of the server's cores, whoever used them",
    "client_cores_busy": "mean busy share (0..1) of the client's cores, whoever used them",
    "host_memory_used_bytes": "bytes of memory in use on the host",
    "network_received_bytes": "bytes since the previous sample; loopback if the server is on this "
    "host, else all other interfaces",
    "network_sent_bytes": "bytes since the previous sample, as network_received_bytes",
    "scrape_failures": "failed scrapes of Triton's metrics since the previous sample (0 or 1)",
    "nv_inference_*": "Triton's counters per model (the tenant): increase since the previous "
    "successful scrape, summed over versions, devices and reasons; *_us in microseconds. Gauges "
    "among them (nv_inference_pending_request_count): the value itself",
    "nv_cpu_*": "Triton's gauges of its host: utilization 0..1, memory in bytes",
    **gpu.METRICS,
    "nv_gpu_*": "Triton's gauges of its GPUs, summed over them: utilization 0..1 each, memory in "
    "bytes, power in watts",
}
"""Every metric with its unit and meaning; `*` stands for the rest of a name that Triton gives."""

MONITOR_SCHEMA = pa.schema(
    [
        pa.field(
            "time_ns",
            pa.int64(),
            nullable=False,
            metadata={"unit": "ns", "meaning": "time of the sample, time.monotonic_ns()"},
        ),
        pa.field(
            "metric",
            pa.dictionary(pa.int32(), pa.string()),
            nullable=False,
            metadata={"unit": "", "meaning": "name of the metric"},
        ),
        pa.field(
            "tenant",
            pa.string(),
            metadata={"unit": "", "meaning": "Triton model; null for metrics of the host"},
        ),
        pa.field(
            "value",
            pa.float64(),
            nullable=False,
            metadata={"unit": "per metric", **METRICS},
        ),
        pa.field(
            "gpu",
            pa.int32(),
            metadata={"unit": "", "meaning": "number of the GPU; null for all other metrics"},
        ),
    ]
)
"""Schema of monitor.parquet, with units in the fields' metadata."""

_ROW_GROUP_ROWS = 10_000
_SCRAPE_TIMEOUT_S = 0.5
_SHORTEST_RATE_S = 0.25
"""The host counts CPU time in ticks of 10 ms: over less than this a rate is mostly rounding."""

Key = tuple[str, str | None]
"""A metric and its tenant."""


class Monitor:
    """Context manager that samples from a thread of the measuring process.

    Samples are due at start + k x period on the monotonic clock: a late sample does not delay the
    next one, and one that is due while another is still taken is left out. The file appears under
    its name, complete, when the context is left, also by an exception; until then it is
    `<name>.partial`.

    Args:
        path: the parquet file to write.
        metrics_url: URL of Triton's metrics.
        server_pid: process id of the server, or None if it runs on another host.
        server_cores: CPU ids of the server on this host (may be empty).
        client_cores: CPU ids of the client.
        period_s: seconds from sample to sample.
        gpus: GPUs of the server on this host.
        access: TLS and headers of the metrics.

    Raises:
        GpuError: when made, one of the GPUs is missing.
        Exception: on leaving, what ended the thread, if the body itself did not raise.
    """

    def __init__(
        self,
        path: Path,
        metrics_url: str,
        server_pid: int | None,
        server_cores: Sequence[int],
        client_cores: Sequence[int],
        period_s: float = 1.0,
        gpus: Sequence[int] = (),
        *,
        access: Access = PLAIN,
    ) -> None:
        self._path = path
        self._partial = path.with_name(path.name + ".partial")
        self._period_s = period_s
        self._sampler = Sampler(metrics_url, server_pid, server_cores, client_cores, gpus, access)
        self._leaving = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        _table([])  # the first conversion takes 0.3 s of CPU time; have it before the measurement
        self._writer = pq.ParquetWriter(self._partial, MONITOR_SCHEMA, compression="zstd")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with signals_deferred():
            self._leaving.set()
            self._thread.join()
            self._writer.close()
            self._partial.replace(self._path)
        if self._failure is not None and error is None:
            raise self._failure

    def _run(self) -> None:
        rows: list[Row] = []
        try:
            self._sampler.sample()  # sets the base of the increases
            due_s = time.monotonic() + self._period_s
            while not self._leaving.wait(max(0.0, due_s - time.monotonic())):
                rows += self._sampler.sample()
                missed = int(max(0.0, time.monotonic() - due_s) / self._period_s)
                due_s += (1 + missed) * self._period_s
                if len(rows) >= _ROW_GROUP_ROWS:
                    self._writer.write_table(_table(rows))
                    rows = []
            rows += self._sampler.sample()  # the rest, so that the increases sum to the total
            self._writer.write_table(_table(rows))
        except Exception as failure:
            self._failure = failure
        finally:
            self._sampler.close()


class Row(NamedTuple):
    """One row of monitor.parquet."""

    time_ns: int
    metric: str
    tenant: str | None
    value: float
    gpu: int | None = None


def _table(rows: Sequence[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(MONITOR_SCHEMA)
    arrays = [
        pa.array(column, field.type) for column, field in zip(columns, MONITOR_SCHEMA, strict=True)
    ]
    return pa.table(arrays, schema=MONITOR_SCHEMA)


class Sampler:
    """Takes one sample at a time; increases and rates refer to the sample before.

    To be used from one thread. The arguments are those of `Monitor`.
    """

    def __init__(
        self,
        metrics_url: str,
        server_pid: int | None,
        server_cores: Sequence[int],
        client_cores: Sequence[int],
        gpus: Sequence[int] = (),
        access: Access = PLAIN,
    ) -> None:
        self._gpus = gpu.GpuSampler(gpus, server_cores)
        self._scraper = _Scraper(metrics_url, access)
        self._server_pid = server_pid
        self._server_ticks = None if server_pid is None else start_ticks(server_pid)
        self._cores = {"server_cores_busy": server_cores, "client_cores_busy": client_cores}
        self._time_ns: int | None = None
        self._cpu_ticks: Mapping[int, Process] = {}
        self._core_ticks: Mapping[int, tuple[int, int]] = {}
        self._network: tuple[int, int] = (0, 0)
        self._counters: Mapping[Key, float] | None = None

    def sample(self) -> list[Row]:
        """Take a sample; the first one only has what needs no sample before it."""
        now_ns = time.monotonic_ns()
        elapsed_s = None if self._time_ns is None else (now_ns - self._time_ns) / 1e9
        self._time_ns = now_ns
        values: dict[Key, float] = {}
        values.update(self._processes(elapsed_s))
        values.update(self._host(elapsed_s))
        values.update(self._triton())
        return [
            *(Row(now_ns, metric, tenant, value) for (metric, tenant), value in values.items()),
            *self._of_gpus(),
        ]

    def close(self) -> None:
        """Close the connection to the server."""
        self._scraper.close()
        self._gpus.close()

    def _of_gpus(self) -> Iterator[Row]:
        """With a time of their own: energy is told of the moment at which it was read."""
        now_ns = time.monotonic_ns()
        for number, metric, value in self._gpus.sample():
            yield Row(now_ns, metric, None, value, number)

    def _processes(self, elapsed_s: float | None) -> Iterator[tuple[Key, float]]:
        table = process_table()
        server: set[int] = set()
        root = table.get(self._server_pid) if self._server_pid is not None else None
        if self._server_pid is not None and root and root.start_ticks == self._server_ticks:
            server = tree(table, self._server_pid)
            yield (
                ("server_rss_bytes", None),
                sum(table[pid].rss_pages for pid in server) * PAGE_BYTES,
            )
        if elapsed_s is not None and elapsed_s >= _SHORTEST_RATE_S:
            client = tree(table, os.getpid()) - server
            for metric, pids in (("server_cpu_cores", server), ("client_cpu_cores", client)):
                if pids:
                    ticks = sum(self._used_ticks(pid, table[pid]) for pid in pids)
                    yield (metric, None), ticks / TICKS_PER_S / elapsed_s
        self._cpu_ticks = table

    def _used_ticks(self, pid: int, process: Process) -> int:
        before = self._cpu_ticks.get(pid)
        # a process that was not there before, or has another's id, began after the last sample
        known = before is not None and before.start_ticks == process.start_ticks
        return process.cpu_ticks - (before.cpu_ticks if known and before else 0)

    def _host(self, elapsed_s: float | None) -> Iterator[tuple[Key, float]]:
        yield ("host_memory_used_bytes", None), float(psutil.virtual_memory().used)
        cores_now, network = core_ticks(), network_bytes(self._scraper.is_local)
        if elapsed_s is not None:
            for metric, cores in self._cores.items():
                shares = busy_shares(self._core_ticks, cores_now, cores)
                if shares and elapsed_s >= _SHORTEST_RATE_S:
                    yield (metric, None), sum(shares) / len(shares)
            names = ("network_received_bytes", "network_sent_bytes")
            for metric, before, after in zip(names, self._network, network, strict=True):
                yield (metric, None), float(after - before)
        self._core_ticks, self._network = cores_now, network

    def _triton(self) -> Iterator[tuple[Key, float]]:
        scrape = self._scraper.get()
        yield ("scrape_failures", None), float(scrape is None)
        if scrape is not None:
            yield from scrape.gauges.items()
            if self._counters is not None:
                yield from counter_increases(self._counters, scrape.counters).items()
            self._counters = scrape.counters


# --- Triton's metrics -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Scrape:
    """The values of one scrape that a monitor records."""

    counters: Mapping[Key, float]
    gauges: Mapping[Key, float]


def parse_metrics(text: str) -> Scrape:
    """Read Triton's metrics in Prometheus's text format.

    Counters and gauges called `nv_inference_*` are summed per model over all other labels (version,
    reason of failure, GPU), gauges called `nv_cpu_*` and `nv_gpu_*` over theirs. What is not a
    finite number is left out.

    Raises:
        ValueError: the text is not in that format.
    """
    found: dict[str, dict[Key, float]] = {"counter": defaultdict(float), "gauge": {}}
    for family in text_string_to_metric_families(text):
        wanted = family.name.startswith(("nv_inference_", "nv_cpu_", "nv_gpu_"))
        if wanted and family.type in found:
            values = found[family.type]
            for sample in family.samples:
                if not math.isfinite(sample.value):
                    continue
                # the family's name: the parser appends "_total" to the samples of a counter
                key = (family.name, sample.labels.get("model"))
                values[key] = values.get(key, 0.0) + sample.value
    return Scrape(counters=dict(found["counter"]), gauges=found["gauge"])


def counter_increases(before: Mapping[Key, float], after: Mapping[Key, float]) -> dict[Key, float]:
    """Increase of each counter between two scrapes.

    A counter that fell was reset (the server or the model was loaded anew), and one that is new
    began at 0: both have grown by what they show now. This is the rule of Prometheus's `increase`.
    """
    return {
        key: value - before.get(key, 0.0) if value >= before.get(key, 0.0) else value
        for key, value in after.items()
    }


class _Scraper:
    """Keeps one connection to the metrics endpoint: a new one each time costs twice as much."""

    def __init__(self, url: str, access: Access) -> None:
        parts = urlsplit(url)
        if parts.hostname is None:
            raise ValueError(f"{url}: not the URL of a server's metrics")
        self.is_local = parts.hostname in ("127.0.0.1", "::1", "localhost")
        self._path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/metrics"
        self._headers = access.values(parts.scheme)
        self._connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = access.ssl_context() or ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=_SCRAPE_TIMEOUT_S, context=context
            )
        else:
            self._connection = http.client.HTTPConnection(
                parts.hostname, parts.port or 80, timeout=_SCRAPE_TIMEOUT_S
            )

    def get(self) -> Scrape | None:
        """The metrics of now, or None if they cannot be had."""
        try:
            deadline_s = time.monotonic() + _SCRAPE_TIMEOUT_S
            self._connection.request("GET", self._path, headers=self._headers)
            # Closed, or the connection could not be used again.
            with self._connection.getresponse() as response:
                text = read_within(response, deadline_s).decode()
            return parse_metrics(text) if response.status == http.HTTPStatus.OK else None
        # The parser of the format raises more than ValueError at what is not in it.
        except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
            self._connection.close()
            return None

    def close(self) -> None:
        self._connection.close()
