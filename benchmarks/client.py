"""Compare the client of Perseus with perf_analyzer, on a model that responds at once.

For both tools, the benchmark reads the number of requests from the server and the CPU time from the
kernel, over equally long times. Trials of the two tools alternate, and the result is the median of
the trials.

With many requests in flight, the core of the server limits the throughput of both tools. The
benchmark therefore compares CPU times in an open loop, in which both tools offer the same rate.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks import aiperf
from benchmarks.aiperf import AIPerf
from benchmarks.perf_analyzer import NAME, PerfAnalyzer
from benchmarks.results import Goal, Row
from benchmarks.serving import SEED, Place, Say, serving
from perseus.host.procfs import TICKS_PER_S, process_table, tree
from perseus.measurement.ceiling import MODEL, Shape, write_null_model
from perseus.models.tensors import Tensor, TensorSpec
from perseus.peak import stats
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import server_times
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.client import Client
from perseus.traffic.route import Route, inline, shared

BENCHMARK = "client"
SHAPE = Shape((TensorSpec("input", "FP32", (3, 224, 224)),), request_batch_size=1)
SMALL = Shape((TensorSpec("input", "FP32", (1,)),), request_batch_size=1)
CONCURRENCIES = (1, 4, 16)
AIPERF_CONCURRENCIES = (1, 16)
AIPERF_ROUNDS = 2  # AIPerf takes about 10 s to start
OFFERED = (0.25, 0.5, 0.75)
"""Offered rates for the comparison of CPU times, as shares of the highest rate that both tools
reach."""
KEPT_UP = 0.97
"""Share of the offered rate that Perseus and a mode of perf_analyzer must reach for the comparison
of CPU times."""
ROUNDS = 4
"""Trials of each case. The rate of Perseus varies between trials, so two trials are too few."""
WARM_S, SPAN_S, OPEN_S = 0.7, 2.5, 8.0
PEER_WINDOWS = ("-p", "1200", "-r", "3")  # three windows of 1.2 s are longer than WARM_S + SPAN_S
PEER_MODES: tuple[tuple[str, ...], ...] = ((), ("--async",))
PATIENCE_S = 2.0
BEGIN_S = 20.0  # time for a load generator to make inputs and start


@dataclass(frozen=True)
class Transport:
    """A way to send requests (protocol, shared memory), and the goals of Perseus / perf_analyzer.

    For each concurrency of a closed loop with a goal, `least_rates` has the smallest ratio of the
    rates that meets the goal. `most_cpu` is the largest ratio of the CPU times in an open loop that
    meets the goal.
    """

    name: str
    protocol: str
    in_shared_memory: bool
    least_rates: Mapping[int, float]
    most_cpu: float


HTTP = Transport("plain HTTP", "http", False, {4: 1.0, 16: 1.0}, 1.0)
TRANSPORTS = (
    Transport("plain gRPC", "grpc", False, {1: 1.6}, 0.6),
    Transport("system shared memory", "grpc", True, {4: 1.0, 16: 1.0}, 1.0),
    HTTP,
)


@dataclass(frozen=True)
class Use:
    """The rate of a load generator, and its CPU time per request."""

    rate_rps: float
    cpu_us: float


def run(at: Place, peer: PerfAnalyzer, second: AIPerf, say: Say) -> Iterator[Row]:
    yield from _beside_perf_analyzer(at, peer, say)
    for shape in (SHAPE, SMALL):
        yield from _beside_aiperf(at, second, shape, say)


def _beside_perf_analyzer(at: Place, peer: PerfAnalyzer, say: Say) -> Iterator[Row]:
    model = MODEL
    with _null_server(at, SHAPE) as server:
        for transport in TRANSPORTS:
            closed = list(_closed(at, peer, server, model, transport, say))
            yield from closed
            ceiling_rps = max(row.ours for row in closed if row.metric == RATE)
            peer_rps = max(row.peer for row in closed if row.metric == RATE)
            for share in OFFERED:
                rate_rps = share * min(ceiling_rps, peer_rps)
                yield _offered(at, peer, server, model, transport, rate_rps, say)
            with _client(at, server, model, transport) as client:
                yield _send_lag(client, transport, ceiling_rps / 2)


def _beside_aiperf(at: Place, peer: AIPerf, shape: Shape, say: Say) -> Iterator[Row]:
    """Compare Perseus with AIPerf, over HTTP and with the same input: in closed loops, and in an
    open loop at half the rate that AIPerf reaches."""
    (tensor,) = shape.inputs
    size, sizes = 4 * math.prod(tensor.dims), (1, *tensor.dims)
    images = [np.zeros(sizes, np.float32)]
    with _null_server(at, shape) as server:

        def ours(load: Callable[[RunningServer, Client], Use]) -> Use:
            with _client(at, server, MODEL, HTTP, images) as client:
                return load(server, client)

        def theirs(*options: str) -> Use:
            asked = [*options, "--benchmark-duration", "600"]
            with peer.running(server.http_address, MODEL, sizes, asked):
                return _observe(server, MODEL)

        rates_rps = []
        for concurrency in AIPERF_CONCURRENCIES:
            pairs = [
                (
                    ours(partial(_ours, concurrency=concurrency)),
                    theirs("--concurrency", str(concurrency)),
                )
                for _ in range(AIPERF_ROUNDS)
            ]
            mine, other = map(_median, zip(*pairs, strict=True))
            rates_rps.append(other.rate_rps)
            case = f"HTTP, inputs of {size} bytes, concurrency {concurrency}"
            say(f"{case}: {mine.rate_rps:.0f}/s beside {other.rate_rps:.0f}/s")
            rate = Goal(">=", 1)
            yield Row(BENCHMARK, case, RATE, mine.rate_rps, other.rate_rps, aiperf.NAME, rate)
            cpu = Goal("<=", 1)
            yield Row(BENCHMARK, case, CPU, mine.cpu_us, other.cpu_us, aiperf.NAME, cpu)
        rate_rps = max(rates_rps) / 2
        load = ["--request-rate", f"{rate_rps:.3f}", "--arrival-pattern", "poisson"]
        pairs = [
            (ours(partial(_ours_open, rate_rps=rate_rps)), theirs(*load))
            for _ in range(AIPERF_ROUNDS)
        ]
        mine, other = map(_median, zip(*pairs, strict=True))
        case = f"HTTP, inputs of {size} bytes, open loop at {rate_rps:.0f} requests/s"
        goal = cpu_goal(1, mine, rate_rps)
        yield Row(BENCHMARK, case, CPU, mine.cpu_us, other.cpu_us, aiperf.NAME, goal)


@contextmanager
def _null_server(at: Place, shape: Shape) -> Iterator[RunningServer]:
    repository = at.folder / "null"
    shutil.rmtree(repository, ignore_errors=True)
    write_null_model(repository, shape)
    with serving(at, repository) as server:
        yield server


RATE = "requests/s (higher is better)"
CPU = "CPU us per request (lower is better)"


def _closed(
    at: Place, peer: PerfAnalyzer, server: RunningServer, model: str, transport: Transport, say: Say
) -> Iterator[Row]:
    for concurrency in CONCURRENCIES:
        ours, theirs = [], []
        for _ in range(ROUNDS):
            # A client for each trial: perf_analyzer unregisters all shared memory when it starts.
            with _client(at, server, model, transport) as client:
                ours.append(_ours(server, client, concurrency))
            load = f"--concurrency-range={concurrency}"
            theirs += [
                [_theirs(peer, server, model, transport, [load, *mode]) for mode in PEER_MODES]
            ]
        rates = [max(modes, key=lambda use: use.rate_rps) for modes in theirs]
        mine, other = _median(ours), _median(rates)
        case = f"{transport.name}, concurrency {concurrency}"
        say(f"{case}: {mine.rate_rps:.0f}/s beside {other.rate_rps:.0f}/s")
        least = transport.least_rates.get(concurrency)
        goal = Goal(">=", least) if least else None
        yield Row(BENCHMARK, case, RATE, mine.rate_rps, other.rate_rps, NAME, goal)
        yield Row(BENCHMARK, case, CPU, mine.cpu_us, other.cpu_us, NAME)


def _offered(
    at: Place,
    peer: PerfAnalyzer,
    server: RunningServer,
    model: str,
    transport: Transport,
    rate_rps: float,
    say: Say,
) -> Row:
    """Return the row with the CPU times of both tools for the same Poisson arrivals. For
    perf_analyzer, the row has the mode that needs the least CPU time among the modes that reach the
    offered rate."""
    ours, theirs = [], []
    load = [f"--request-rate-range={rate_rps:.3f}", "--request-distribution=poisson"]
    for _ in range(ROUNDS):
        with _client(at, server, model, transport) as client:
            ours.append(_ours_open(server, client, rate_rps))
        uses = [_theirs(peer, server, model, transport, [*load, *mode]) for mode in PEER_MODES]
        theirs += [cheapest(uses, rate_rps)]
    mine, other = _median(ours), _median(theirs)
    case = f"{transport.name}, open loop at {rate_rps:.0f} requests/s"
    say(f"{case}: {mine.rate_rps:.0f}/s beside {other.rate_rps:.0f}/s")
    goal = cpu_goal(transport.most_cpu, mine, rate_rps)
    return Row(BENCHMARK, case, CPU, mine.cpu_us, other.cpu_us, NAME, goal)


def cpu_goal(most: float, mine: Use, rate_rps: float) -> Goal:
    """Return the goal that the ratio of the CPU times in an open loop is at most `most`, and that
    Perseus reaches the offered rate."""
    condition = f"at least {100 * KEPT_UP:g} % of the offered rate"
    return Goal("<=", most, condition=condition, holds=mine.rate_rps >= KEPT_UP * rate_rps)


def cheapest(uses: Sequence[Use], rate_rps: float) -> Use:
    """Return the entry of `uses` with the least CPU time among the entries that reach the rate, or
    among all entries if none reaches the rate."""
    kept_up = [use for use in uses if use.rate_rps >= KEPT_UP * rate_rps]
    return min(kept_up or uses, key=lambda use: use.cpu_us)


def _median(uses: Sequence[Use]) -> Use:
    rate, cpu = (np.median([getattr(use, name) for use in uses]) for name in ("rate_rps", "cpu_us"))
    return Use(float(rate), float(cpu))


@contextmanager
def _client(
    at: Place,
    server: RunningServer,
    model: str,
    transport: Transport,
    images: Sequence[Tensor] = (np.zeros((1, 3, 224, 224), np.float32),),
) -> Iterator[Client]:
    placed = shared(images, server.grpc_address) if transport.in_shared_memory else None
    with placed or nullcontext(inline(images)) as inputs:
        address = _address(server, transport)
        route = Route(transport.protocol, address, model, inputs, timeout_s=10)
        with Client(model, route, [at.client_core]) as client:
            yield client


def _address(server: RunningServer, transport: Transport) -> str:
    return server.http_address if transport.protocol == "http" else server.grpc_address


def _ours(server: RunningServer, client: Client, concurrency: int) -> Use:
    client.start_closed(time.monotonic_ns(), WARM_S + SPAN_S + 1, concurrency)
    return _observe_ours(server, client)


def _ours_open(server: RunningServer, client: Client, rate_rps: float) -> Use:
    offsets_s = Arrivals().times_s(rate_rps, WARM_S + SPAN_S + 1, np.random.default_rng(SEED))
    client.start(time.monotonic_ns(), offsets_s)
    return _observe_ours(server, client)


def _observe_ours(server: RunningServer, client: Client) -> Use:
    """Observe the load of Perseus, and stop this load. Raises RuntimeError if a request failed."""
    use = _observe(server, client.name)
    client.stop(PATIENCE_S)
    if errors := client.result().errors:
        raise RuntimeError(f"requests of Perseus failed: {errors}")
    return use


def _theirs(
    peer: PerfAnalyzer, server: RunningServer, model: str, transport: Transport, load: Sequence[str]
) -> Use:
    memory = ["--shared-memory", "system"] if transport.in_shared_memory else []
    options = [*PEER_WINDOWS, *memory, *load]
    address = _address(server, transport)
    with peer.running(address, model, options, transport.protocol) as process:
        use = _observe(server, model)
        process.communicate()  # at its end, perf_analyzer unregisters its shared memory
    return use


def _observe(server: RunningServer, model: str) -> Use:
    """Wait for the first requests, and then measure the rate and the CPU time of all child
    processes except the server."""
    idle, end_s = server_times(server, model).requests, time.monotonic() + BEGIN_S
    while server_times(server, model).requests == idle:
        if time.monotonic() > end_s:
            raise RuntimeError(f"no request was answered within {BEGIN_S:g} s")
        time.sleep(0.05)
    time.sleep(WARM_S)
    before, cpu_before_s, start_s = server_times(server, model), _cpu_s(server), time.monotonic()
    time.sleep(SPAN_S)
    after, cpu_after_s, end_s = server_times(server, model), _cpu_s(server), time.monotonic()
    requests = after.requests - before.requests
    return Use(requests / (end_s - start_s), (cpu_after_s - cpu_before_s) / requests * 1e6)


def _cpu_s(server: RunningServer) -> float:
    table = process_table()
    servers = tree(table, server.pid) if server.pid else set()
    clients = tree(table, os.getpid()) - servers - {os.getpid()}
    return sum(table[pid].cpu_ticks for pid in clients) / TICKS_PER_S


def _send_lag(client: Client, transport: Transport, rate_rps: float) -> Row:
    start_ns = time.monotonic_ns() + round(0.05e9)
    offsets_s = Arrivals().times_s(rate_rps, OPEN_S, np.random.default_rng(SEED))
    client.start(start_ns, offsets_s)
    time.sleep(OPEN_S + 0.5)
    client.stop(PATIENCE_S)
    requests = client.result().requests
    settled = requests.between(start_ns + round(WARM_S * 1e9), start_ns + round(OPEN_S * 1e9))
    lag_ms = stats.percentile(settled.send_lag_ms(time.monotonic_ns()), 99)
    case = f"{transport.name}, open loop at {rate_rps:.0f} requests/s, half the closed-loop rate"
    return Row(
        BENCHMARK, case, "send lag p99, ms (lower is better)", lag_ms, goal=Goal("<", 1, "ours")
    )
