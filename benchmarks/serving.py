"""Servers under load for the benchmarks: their cores, their clients and their service times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.models import KNOWN_BACKENDS, Sleep, write_sleep
from perseus.host import cores
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.raw_results import RequestsWriter
from perseus.peak import stats
from perseus.serving.launchers.embedded import embedded_triton
from perseus.serving.running_server import RunningServer
from perseus.serving.triton_command import BACKENDS
from perseus.traffic.arrivals import Arrivals, stream
from perseus.traffic.client import Client, sequential_ms
from perseus.traffic.requests import MS
from perseus.traffic.route import Route, inline

SEED = 2020
Say = Callable[[str], None]


@dataclass(frozen=True)
class Place:
    """Where a benchmark runs: a scratch folder, a core of the server, a core of the client."""

    folder: Path
    server_core: int
    client_core: int


def place(folder: Path) -> Place:
    """Return the place of a benchmark: the server has the last core, and the client the first core.
    Raises TooFewCoresError."""
    server_cores, client_cores = cores.split_cores(1)
    folder.mkdir(parents=True, exist_ok=True)
    return Place(folder.resolve(), server_cores[0], client_cores[0])


@contextmanager
def serving(at: Place, repository: Path, backends: Path = BACKENDS) -> Iterator[RunningServer]:
    log = at.folder / "server.log"
    with embedded_triton(repository, log, [at.server_core], backends=backends) as server:
        yield server


@contextmanager
def loading(
    at: Place,
    server: RunningServer,
    *clients: Client,
    longest_sla_s: float,
    arrivals: Arrivals | None = None,
) -> Iterator[LiveSystem]:
    """Yield the server as a system that a search can load, with clients that already run."""
    with RequestsWriter(at.folder / "requests.parquet") as writer:
        yield LiveSystem(
            server,
            clients,
            arrivals or Arrivals(),
            [stream(SEED, 0, i) for i in range(len(clients))],
            writer,
            server_cores=[at.server_core],
            client_cores=[at.client_core],
            longest_sla_s=longest_sla_s,
        )


@dataclass(frozen=True)
class Known:
    """A server with a known service time, and a known overhead of a request outside the queue.

    `alone_ms` has latencies without load.
    """

    sleep: Sleep
    server: RunningServer
    model: str
    system: LiveSystem
    alone_ms: NDArray[np.float64]
    service_ms: float
    overhead_ms: float

    def service_now_ms(self) -> float:
        """Measure the service time again, because the speed of the host changes."""
        return _busy_gap_ms(self.system, self.sleep)


@contextmanager
def sleeping(at: Place, sleep: Sleep) -> Iterator[Known]:
    """Yield a server that sleeps for each request, with its measured service time, which is longer
    than the sleep.

    The service time is the mean time per request of the busy server, without stalls. The overhead
    is the median latency without load, minus the service time.
    """
    repository = at.folder / "sleep"
    model = write_sleep(repository, sleep)
    with serving(at, repository, KNOWN_BACKENDS) as server:
        inputs = inline([np.zeros((1, 1), np.float32)])
        route = Route("grpc", server.grpc_address, model, inputs, timeout_s=20)
        alone_ms = sequential_ms(route, 100, 5)
        client = Client(model, route, [at.client_core])
        with client, loading(at, server, client, longest_sla_s=1) as system:
            service_ms = _busy_gap_ms(system, sleep)
            overhead_ms = stats.percentile(alone_ms, 50) - service_ms
            yield Known(sleep, server, model, system, alone_ms, service_ms, overhead_ms)


def _busy_gap_ms(system: LiveSystem, sleep: Sleep) -> float:
    """Return the mean time between responses at an offered rate of twice the throughput."""
    with system.offer([2000 / sleep.service_ms], 6) as load:
        (requests,) = load.until(5).requests
    done_ns = np.sort(requests.done_ns[requests.answered])
    gaps_ms = np.diff(done_ns[done_ns > done_ns[0] + 1e9]) / MS
    if sleep.stall_every:
        gaps_ms = gaps_ms[gaps_ms < sleep.stall_ms / 2]
    return float(np.mean(gaps_ms))
