"""Observe a window in progress on a running server."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from perseus.host.gpu import OtherGpuWork
from perseus.host.procfs import TICKS_PER_S, most_at_work, other_cpu_share, read_cpu
from perseus.measurement.server_life import ServerLife
from perseus.peak.system import Observation
from perseus.serving.failures import ServerError
from perseus.serving.open_inference import is_live
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import tenant_times
from perseus.traffic.client import Client
from perseus.traffic.loops import backlog_s
from perseus.traffic.requests import MS
from perseus.traffic.sender import Snapshot

ALIVE_S = 0.5  # time between two checks whether the server is alive


class LiveLoad:
    """A window in progress, which begins at `start_ns` on the monotonic clock."""

    def __init__(
        self,
        server: RunningServer,
        clients: Sequence[Client],
        start_ns: int,
        *,
        server_cores: Sequence[int],
        client_core_count: int,
        longest_sla_s: float,
        on_gpus: OtherGpuWork | None = None,
    ) -> None:
        self._server, self._clients, self._start_ns = server, clients, start_ns
        self._on_gpus = on_gpus
        self._server_cores, self._client_core_count = server_cores, client_core_count
        self._cpu = read_cpu(server_cores, server.pid)
        self._times = [tenant_times(server, client.model, client.steps or ()) for client in clients]
        self._queue_ms: list[list[tuple[float, float]]] = [[] for _ in clients]
        self._life = ServerLife(server, clients, longest_sla_s)
        self._seen: list[Snapshot] = []

    def until(self, elapsed_s: float) -> Observation:
        """Wait until `elapsed_s` seconds after the start of the window; return the observations of
        the window so far.

        Raises ServerError as soon as the server has ended or no longer responds.
        """
        look_ns = self._start_ns + round(elapsed_s * 1e9)
        while (wait_s := (look_ns - time.monotonic_ns()) / 1e9) > 0:
            time.sleep(min(wait_s, ALIVE_S))
            self._life.require()
            self._read_queues()
        # A busy server may be late to send its statistics, so the wait may have taken longer.
        passed_s = max(elapsed_s, (time.monotonic_ns() - self._start_ns) / 1e9)
        self._seen = seen = [client.look(look_ns) for client in self._clients]
        cpu = read_cpu(self._server_cores, self._server.pid)
        used_s = sum(sum(snapshot.cpu_s) for snapshot in seen)
        shared = used_s / passed_s / self._client_core_count
        return Observation(
            start_ns=self._start_ns,
            elapsed_s=elapsed_s,
            requests=tuple(snapshot.requests for snapshot in seen),
            client_cpu=tuple(
                max(*snapshot.cpu_s, shared * passed_s) / passed_s for snapshot in seen
            ),
            other_cpu_share=None if self._server.pid is None else other_cpu_share(self._cpu, cpu),
            other_process=most_at_work(self._cpu, cpu, self._server_cores),
            queue_ms=tuple(np.array(read, float).reshape(-1, 2) for read in self._queue_ms),
            other_gpu_share=None if self._on_gpus is None else self._on_gpus.share(self._start_ns),
        )

    def backlog_s(self) -> float:
        """Return the time in seconds that the server needs to empty its queue; 0 if unknown.

        The time begins at the last observation. It includes one more request of each client
        process.
        """
        return max(
            (backlog_s(each.requests, self._start_ns, len(each.cpu_s)) for each in self._seen),
            default=0.0,
        )

    def server_cpu_s(self) -> float:
        """Return the CPU time of the server in seconds since the start of the window; NaN for a
        server on another host."""
        if self._server.pid is None:
            return float("nan")
        used = read_cpu(self._server_cores, self._server.pid).used - self._cpu.used
        return used / TICKS_PER_S

    def _read_queues(self) -> None:
        """Read the mean queue time of the requests that the server has answered since the previous
        reading.

        If the server reports no statistics, the function only checks that the server is alive.
        """
        for i, client in enumerate(self._clients):
            try:
                new = tenant_times(self._server, client.model, client.steps or (), timeout_s=1.0)
            except ServerError:  # the server is too busy or dead; `require` detects a dead server
                return
            old = self._times[i]
            if new is None or old is None:
                if is_live(self._server, timeout_s=1.0):
                    self._life.heard()
                return
            self._life.heard()
            served = new.since(old)
            if served is None:  # the server loaded the model again, so the counters began at 0
                self._times[i] = new
            elif served.requests > 0:
                self._times[i] = new
                self._life.served(i)
                if client.steps is not None:
                    seconds = (time.monotonic_ns() - self._start_ns) / 1e9
                    self._queue_ms[i].append((seconds, served.queue_ns / served.requests / MS))
