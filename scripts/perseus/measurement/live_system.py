"""A running Triton server under load, as the search sees it: one client process per tenant."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from perseus.host.procfs import foreign_share, read_cpu
from perseus.measurement.decomposition import Decomposition, decompose
from perseus.measurement.raw_results import RequestsWriter
from perseus.peak.system import Observation
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import server_times
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.client import Client, Result
from perseus.traffic.requests import MS, Status

LEAD_S = 0.05  # from the decision to start a window to its start
IDLE_S = 20.0  # for the server to work off its queue after a window
ALIVE_S = 0.5  # between two looks whether the server is alive
SILENT_S = 5.0  # without any answer: a server that was stopped, or hangs
SILENT_SLAS = 10  # the same in multiples of the longest SLA
UNHEARD_S = 3.0  # in addition, without its statistics: one or two looks may fail under load
DYING_S = 1.0  # a process closes its connections some time before it has ended


@dataclass(frozen=True)
class Ended:
    """What a window left behind besides its requests."""

    start_ns: int
    decompositions: tuple[Decomposition, ...]


class LiveSystem:
    """Offers windows of load to a running server and keeps every request."""

    def __init__(
        self,
        server: RunningServer,
        clients: Sequence[Client],
        arrivals: Arrivals,
        streams: Sequence[np.random.Generator],
        writer: RequestsWriter,
        *,
        server_cores: Sequence[int],
        client_cores: Sequence[int],
        patience_s: float,
    ) -> None:
        self._server, self._clients, self._writer = server, clients, writer
        self.arrivals, self._streams = arrivals, streams
        self._server_cores, self._client_cores = server_cores, client_cores
        self._patience_s = patience_s
        self.ended: list[Ended] = []
        self.errors: dict[str, dict[str, str]] = {client.name: {} for client in clients}
        """By tenant, the first message of each kind of error."""

    @contextmanager
    def offer(self, rates_rps: Sequence[float], duration_s: float) -> Iterator[LiveLoad]:
        """A window; raises ServerError when the server has died or answers mostly with errors."""
        times = [
            self.arrivals.times_s(rate, duration_s, stream)
            for rate, stream in zip(rates_rps, self._streams, strict=True)
        ]

        def start(start_ns: int) -> None:
            for client, offsets_s in zip(self._clients, times, strict=True):
                client.start(start_ns, offsets_s)

        with self._window(start) as load:
            yield load

    @contextmanager
    def offer_closed(self, concurrency: int, duration_s: float) -> Iterator[LiveLoad]:
        """A window with so many requests of each tenant in flight; raises as `offer` does."""

        def start(start_ns: int) -> None:
            for client in self._clients:
                client.start_closed(start_ns, duration_s, concurrency)

        with self._window(start) as load:
            yield load

    @contextmanager
    def _window(self, start: Callable[[int], None]) -> Iterator[LiveLoad]:
        with naming_death(self._server), self._loaded(start) as load:
            yield load

    @contextmanager
    def _loaded(self, start: Callable[[int], None]) -> Iterator[LiveLoad]:
        names = [client.name for client in self._clients]
        before = [server_times(self._server, name) for name in names]
        start_ns = time.monotonic_ns() + round(LEAD_S * 1e9)
        start(start_ns)
        load = LiveLoad(
            self._server,
            self._clients,
            start_ns,
            server_cores=self._server_cores,
            client_core_count=len(self._client_cores),
            silent_s=max(SILENT_S, SILENT_SLAS * self._patience_s),
        )
        patience_s, idle_s = 0.0, 0.0
        try:
            yield load
            patience_s, idle_s = self._patience_s, IDLE_S
        finally:
            for client in self._clients:
                client.stop(patience_s, idle_s)
            results = [client.result() for client in self._clients]
            for name, result in zip(names, results, strict=True):
                self.errors[name] = result.errors | self.errors[name]
            # Here, so that the requests of a window that ends badly are kept too.
            self._writer.add(len(self.ended), names, [result.requests for result in results])
        self._require_answers(results)
        after = [server_times(self._server, name) for name in names]
        parts = [
            decompose(a, b, result.requests)
            for a, b, result in zip(before, after, results, strict=True)
        ]
        self.ended.append(Ended(start_ns, tuple(parts)))

    def _require_answers(self, results: Sequence[Result]) -> None:
        for client, result in zip(self._clients, results, strict=True):
            if not result.idle:
                raise ServerError(
                    f"{client.name}: the server did not work off its queue within {IDLE_S:g} s"
                )
            status = result.requests.status
            failed = int(np.sum((status == Status.ERROR) | (status == Status.REFUSED)))
            if failed > len(result.requests) / 2:
                raise ServerError(
                    f"{client.name}: {failed} of {len(result.requests)} requests failed:"
                    f" {'; '.join(result.errors.values())}"
                )


@contextmanager
def naming_death(server: RunningServer) -> Iterator[None]:
    """Whatever fails because the server has died is told as its death.

    Which of its connections is found closed first is chance: a request's, that of the statistics.
    """
    try:
        yield
    except ServerError as error:
        deadline = time.monotonic() + DYING_S
        while server.pid is not None and server.alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        if server.alive():
            raise
        raise ServerError("the server died in mid-run") from error


class LiveLoad:
    """One window under way on a live system."""

    def __init__(
        self,
        server: RunningServer,
        clients: Sequence[Client],
        start_ns: int,
        *,
        server_cores: Sequence[int],
        client_core_count: int,
        silent_s: float,
    ) -> None:
        self._server, self._clients, self._start_ns = server, clients, start_ns
        self._silent_s = silent_s
        self._server_cores, self._client_core_count = server_cores, client_core_count
        self._cpu = read_cpu(server_cores, server.pid)
        self._times = [server_times(server, client.name) for client in clients]
        self._queue_ms: list[list[tuple[float, float]]] = [[] for _ in clients]
        self._heard_s = time.monotonic()

    def until(self, elapsed_s: float) -> Observation:
        """Raises ServerError as soon as the server is seen to be dead or silent."""
        look_ns = self._start_ns + round(elapsed_s * 1e9)
        while (wait_s := (look_ns - time.monotonic_ns()) / 1e9) > 0:
            time.sleep(min(wait_s, ALIVE_S))
            self._require_life()
            self._read_queues()
        seen = [client.look(look_ns) for client in self._clients]
        used_s = sum(sum(snapshot.cpu_s) for snapshot in seen)
        shared = used_s / elapsed_s / self._client_core_count
        return Observation(
            start_ns=self._start_ns,
            elapsed_s=elapsed_s,
            requests=tuple(snapshot.requests for snapshot in seen),
            client_cpu=tuple(
                max(*snapshot.cpu_s, shared * elapsed_s) / elapsed_s for snapshot in seen
            ),
            foreign_cpu=foreign_share(self._cpu, read_cpu(self._server_cores, self._server.pid)),
            queue_ms=tuple(np.array(read, float).reshape(-1, 2) for read in self._queue_ms),
        )

    def _read_queues(self) -> None:
        """The mean queue time of what the server has served since the last reading."""
        for i, client in enumerate(self._clients):
            try:
                new = server_times(self._server, client.name, timeout_s=1.0)
            except ServerError:  # too busy, or about to be found dead
                return
            self._heard_s = time.monotonic()
            old = self._times[i]
            if new.requests > old.requests and new.queue_ns >= old.queue_ns:
                seconds = (time.monotonic_ns() - self._start_ns) / 1e9
                served = new.requests - old.requests
                self._queue_ms[i].append((seconds, (new.queue_ns - old.queue_ns) / served / MS))
                self._times[i] = new

    def _require_life(self) -> None:
        if not self._server.alive():
            raise ServerError("the server is dead")
        # A server on another host has no process to look at, and its refusals come at once.
        unheard_s = time.monotonic() - self._heard_s
        if self._server.pid is None and unheard_s > self._silent_s + UNHEARD_S:
            raise ServerError(f"the server has told no statistics for {unheard_s:.0f} s")
        silent_s = max(client.silent_s() for client in self._clients)
        if silent_s > SILENT_S and self._server.stopped():
            raise ServerError("the server is stopped (SIGSTOP?)")
        if silent_s > self._silent_s:
            raise ServerError(f"the server has answered nothing for {silent_s:.0f} s")
