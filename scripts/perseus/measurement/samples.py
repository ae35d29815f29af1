"""Take samples of the host, of the processes of server and client, and of Triton's metrics."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import psutil

from perseus.host import gpu, powercap
from perseus.host.procfs import (
    TICKS_PER_S,
    Process,
    busy_shares,
    core_ticks,
    network_bytes,
    process_table,
    resources,
    start_ticks,
    tree,
)
from perseus.measurement.triton_metrics import Key, Scraper, counter_increases
from perseus.serving.running_server import RunningServer

SHORTEST_RATE_S = 0.25
"""Shortest time in seconds over which the sampler computes a rate. The host counts CPU time in
ticks of 10 ms, so a rate over a shorter time is mostly rounding error."""


class Row(NamedTuple):
    """One row of monitor.parquet."""

    time_ns: int
    metric: str
    tenant: str | None
    value: float
    gpu: int | None = None


class Sampler:
    """Takes one sample at a time. An increase or a rate in a sample refers to the time since the
    previous sample.

    Only one thread may use a sampler. The arguments have the same meaning as for `Monitor`.
    """

    def __init__(
        self,
        server: RunningServer,
        server_cores: Sequence[int],
        client_cores: Sequence[int],
        gpus: Sequence[int] = (),
    ) -> None:
        self._gpus = gpu.GpuSampler(gpus, server_cores)
        # If the server runs on another host, the energy of this host is irrelevant.
        self._energy = powercap.EnergyCounters() if server_cores else None
        self._scraper = Scraper(server.metrics_url, server.access)
        self._server_pid = server.pid
        self._server_ticks = None if server.pid is None else start_ticks(server.pid)
        self._cores = {"server_cores_busy": server_cores, "client_cores_busy": client_cores}
        self._time_ns: int | None = None
        self._cpu_ticks: Mapping[int, Process] = {}
        self._core_ticks: Mapping[int, tuple[int, int]] = {}
        self._network: tuple[int, int] = (0, 0)
        self._counters: Mapping[Key, float] | None = None

    def sample(self) -> list[Row]:
        """Take a sample. The first sample has no increases and no rates."""
        now_ns = time.monotonic_ns()
        elapsed_s = None if self._time_ns is None else (now_ns - self._time_ns) / 1e9
        self._time_ns = now_ns
        values: dict[Key, float] = {}
        values.update(self._processes(elapsed_s))
        values.update(self._host(elapsed_s))
        values.update(self._triton())
        return [
            *(Row(now_ns, metric, tenant, value) for (metric, tenant), value in values.items()),
            *self._of_processors(),
            *self._of_gpus(),
        ]

    def close(self) -> None:
        """Close the connection to the server, and shut the GPU library down."""
        self._scraper.close()
        self._gpus.close()

    def _of_processors(self) -> Iterator[Row]:
        """Yield the energy of the processors, with the time of this reading."""
        now_ns = time.monotonic_ns()
        joules = None if self._energy is None else self._energy.joules()
        if joules is not None:
            yield Row(now_ns, powercap.METRIC, None, joules)

    def _of_gpus(self) -> Iterator[Row]:
        """Yield samples of the GPUs, with the time of their energy reading."""
        now_ns = time.monotonic_ns()
        for number, metric, value in self._gpus.sample():
            yield Row(now_ns, metric, None, value, number)

    def _processes(self, elapsed_s: float | None) -> Iterator[tuple[Key, float]]:
        table = process_table()
        server: set[int] = set()
        root = table.get(self._server_pid) if self._server_pid is not None else None
        if self._server_pid is not None and root and root.start_ticks == self._server_ticks:
            server = tree(table, self._server_pid)
            memory_bytes, files = resources(table, server)
            yield ("server_rss_bytes", None), float(memory_bytes)
            if files is not None:
                yield ("server_open_files", None), float(files)
        if elapsed_s is not None and elapsed_s >= SHORTEST_RATE_S:
            client = tree(table, os.getpid()) - server
            for metric, pids in (("server_cpu_cores", server), ("client_cpu_cores", client)):
                if pids:
                    ticks = sum(self._used_ticks(pid, table[pid]) for pid in pids)
                    yield (metric, None), ticks / TICKS_PER_S / elapsed_s
        self._cpu_ticks = table

    def _used_ticks(self, pid: int, process: Process) -> int:
        before = self._cpu_ticks.get(pid)
        # A process without a previous sample, or with a reused id, began after the last sample.
        known = before is not None and before.start_ticks == process.start_ticks
        return process.cpu_ticks - (before.cpu_ticks if known and before else 0)

    def _host(self, elapsed_s: float | None) -> Iterator[tuple[Key, float]]:
        yield ("host_memory_used_bytes", None), float(psutil.virtual_memory().used)
        cores_now, network = core_ticks(), network_bytes(self._scraper.is_local)
        if elapsed_s is not None:
            for metric, cores in self._cores.items():
                shares = busy_shares(self._core_ticks, cores_now, cores)
                if shares and elapsed_s >= SHORTEST_RATE_S:
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
