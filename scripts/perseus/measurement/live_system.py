"""Offer load to a running server, with one client per tenant, window after window."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perseus.host.gpu import OtherGpuWork
from perseus.measurement.cpu_times import CpuTimes, cpu_times
from perseus.measurement.decomposition import Decomposition, decompose
from perseus.measurement.idle_host import IdleHostWaiter
from perseus.measurement.live_load import LiveLoad
from perseus.measurement.raw_results import RequestsWriter
from perseus.measurement.server_life import reporting_end_of_server
from perseus.peak.stats import Floats
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import ServerTimes, tenant_times
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.client import Client, Result
from perseus.traffic.requests import Status

LEAD_S = 0.05  # time to prepare the clients before the start of a window
IDLE_S = 20.0
"""After each window, the server gets time to empty its queue. This time is the largest of three
values: IDLE_S seconds, the length of the window, and twice the time that the server needs for its
queue at its mean speed in the window."""


@dataclass(frozen=True)
class EndedWindow:
    """The results of an ended window, without its requests. `number` is the number of the window in
    requests.parquet."""

    number: int
    start_ns: int
    decompositions: tuple[Decomposition, ...]
    cpu: tuple[CpuTimes, ...]


def failures(status: NDArray[np.uint8]) -> int:
    """If the server is broken, return the number of failed requests; otherwise return 0.

    `status` has shape (n,). A server is broken if more than half of the requests fail. A request
    fails if its response is an error. If no request succeeds, refused requests also count as
    failed. The function does not detect whether the server has ended.
    """
    errors = status == Status.ERROR
    refused = status == Status.REFUSED
    failed = errors if np.any(status == Status.OK) else errors | refused
    count = int(np.sum(failed))
    return count if count > len(status) / 2 else 0


class LiveSystem:
    """Offers windows of load to a running server, and stores every request.

    `longest_sla_s` is the largest latency limit of the tenants' SLAs in seconds. At the end of a
    window, the system waits for responses for at most this time. `on_gpus` measures the load of
    other processes on the server's GPUs, and is None without GPUs. `say` gets a message when the
    system waits until the load of other processes ends.
    """

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
        longest_sla_s: float,
        on_gpus: OtherGpuWork | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.server, self._clients, self._writer = server, clients, writer
        self.arrivals, self._streams = arrivals, streams
        self._server_cores, self._client_cores = server_cores, client_cores
        self._longest_sla_s, self._on_gpus = longest_sla_s, on_gpus
        self._idle_host_waiter = IdleHostWaiter(server_cores, server.pid, say, on_gpus)
        self.ended: list[EndedWindow] = []
        self.errors: dict[str, dict[str, str]] = {client.name: {} for client in clients}
        """For each tenant, the first message of each kind of error."""

    def offer(
        self, rates_rps: Sequence[float], duration_s: float
    ) -> AbstractContextManager[LiveLoad]:
        """Offer open-loop load at the rates `rates_rps` (one per tenant) for one window.

        Raises ServerError if the server ends, if most requests fail, or if the server does not
        empty its queue after the window.
        """
        return self.offer_at(
            [
                self.arrivals.times_s(rate, duration_s, stream)
                for rate, stream in zip(rates_rps, self._streams, strict=True)
            ]
        )

    def offer_at(self, times_s: Sequence[Floats]) -> AbstractContextManager[LiveLoad]:
        """Offer a window with given send times, and raise the same errors as `offer`.

        `times_s` contains, for each tenant, ascending send times in seconds since the start of the
        window.
        """

        def start(start_ns: int) -> None:
            for client, offsets_s in zip(self._clients, times_s, strict=True):
                client.start(start_ns, offsets_s)

        return self._window(start)

    def offer_closed(
        self, in_flight: Sequence[int], duration_s: float
    ) -> AbstractContextManager[LiveLoad]:
        """Offer a window in which each tenant has a fixed number of requests in flight, and raise
        the same errors as `offer`.

        `in_flight` contains the number of requests in flight of each tenant.
        """

        def start(start_ns: int) -> None:
            for client, concurrency in zip(self._clients, in_flight, strict=True):
                client.start_closed(start_ns, duration_s, concurrency)

        return self._window(start)

    def wait_until_idle(self, other_load: float) -> bool:
        """Wait until other processes use at most the share `other_load` (0..1) of the server's
        cores and GPUs. Return whether their load has fallen to this share.

        All calls of this method together wait for at most PATIENCE_S seconds. When this time is
        used up, each further call returns False at once.
        """
        return self._idle_host_waiter.wait_until_idle(other_load)

    @contextmanager
    def _window(self, start: Callable[[int], None]) -> Iterator[LiveLoad]:
        with reporting_end_of_server(self.server), self._loaded(start) as load:
            yield load

    @contextmanager
    def _loaded(self, start: Callable[[int], None]) -> Iterator[LiveLoad]:
        before = self._server_times()
        start_ns = time.monotonic_ns() + round(LEAD_S * 1e9)
        start(start_ns)
        try:
            load = LiveLoad(
                self.server,
                self._clients,
                start_ns,
                server_cores=self._server_cores,
                client_core_count=len(self._client_cores),
                longest_sla_s=self._longest_sla_s,
                on_gpus=self._on_gpus,
            )
            yield load
        except Exception:  # an interruption by the user is no Exception, and stores nothing
            self._keep(0.0, 0.0)
            raise
        elapsed_s = (time.monotonic_ns() - start_ns) / 1e9
        idle_s = max(IDLE_S, elapsed_s, 2 * load.backlog_s())
        number, results = self._keep(self._longest_sla_s, idle_s)
        self._require_answers(results, idle_s)
        after = self._server_times()
        parts = [
            decompose(a, b, result.requests)
            for a, b, result in zip(before, after, results, strict=True)
        ]
        cpu = cpu_times(load.server_cpu_s(), results)
        self.ended.append(EndedWindow(number, start_ns, tuple(parts), cpu))

    def _keep(self, patience_s: float, idle_s: float) -> tuple[int, list[Result]]:
        """End the window, even after an error, and store its requests."""
        for client in self._clients:
            client.stop(patience_s, idle_s)
        results = [client.result() for client in self._clients]
        names = [client.name for client in self._clients]
        for name, result in zip(names, results, strict=True):
            self.errors[name] = result.errors | self.errors[name]
        return self._writer.add(names, [result.requests for result in results]), results

    def _server_times(self) -> list[ServerTimes | None]:
        """Return Triton's counters of each tenant's model.

        The counters are None if they lack a time that `decompose` needs.
        """
        return [
            None if each.steps is None else tenant_times(self.server, each.model, each.steps)
            for each in self._clients
        ]

    def _require_answers(self, results: Sequence[Result], idle_s: float) -> None:
        for client, result in zip(self._clients, results, strict=True):
            if failed := failures(result.requests.status):
                raise ServerError(
                    f"{client.name}: {failed} of {len(result.requests)} requests failed:"
                    f" {'; '.join(result.errors.values())}"
                )
            if not result.idle:
                raise ServerError(
                    f"{client.name}: the server did not empty its queue within {idle_s:.0f} s after"
                    " the window"
                )
