"""Simulated servers with known limits, and a search against a simulated server.

Searches run in virtual time with the preset `quick`. Constants of the estimate were tuned on the
servers in KNOWN and GAPS, but not on the servers in HELD_OUT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.queueing import stalling
from benchmarks.serving import SEED
from benchmarks.simulation import (
    STEP_S,
    Discipline,
    Host,
    RecordedHost,
    Service,
    SimulatedServer,
    as_recorded,
    batching,
    deterministic,
    even,
    exponential,
    processor_sharing,
    workers,
)
from perseus.peak.lindley import departures_s
from perseus.peak.line_model import LineModel
from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import Peak
from perseus.peak.search import _Search, find_peak
from perseus.peak.stats import Floats
from perseus.peak.verdict import Verdict
from perseus.peak.virtual_queue import VirtualQueue
from perseus.peak.window import Phase
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla

QUICK = PRESETS["quick"].settings
TRUTH_REQUESTS = 400_000

SPEED_POWER = 1.15
"""Exponent with which a limit rises with the speed of the host, as for M/D/1 with an SLA of ten
service times."""

LONGEST_S, LONG_RUN_S = 2000.0, 20_000.0
"""Longest time of a search on a host whose speed changes, and the time over which the long-run
limit is computed."""


@dataclass(frozen=True)
class Server:
    """A simulated server: service times, SLAs and shares of the load of its tenants, and its
    queueing discipline.

    A search starts at the total rate `start_rps`. `alone_works` is the latency without load, in
    units of the service time. If `instances` is true, each tenant has its own instance, and the
    instances share a core. With a `host`, the speed of the server changes. The client sends late:
    by `lag_per_request_s` times the number of requests in flight.
    """

    services: tuple[Service, ...]
    slas: tuple[Sla, ...]
    start_rps: float
    shares: tuple[float, ...] = (1.0,)
    discipline: Discipline = departures_s
    instances: bool = False
    interference: float = 0.0
    alone_works: float = 1.0
    host: Host | RecordedHost | None = None
    lag_per_request_s: float = 0.0

    @property
    def line(self) -> LoadLine:
        """Load line whose load factor is the total rate of all tenants."""
        return LoadLine((0.0,) * len(self.shares), self.shares)

    def simulated(self, rng: np.random.Generator) -> SimulatedServer:
        return SimulatedServer(
            self.services,
            rng,
            discipline=self.discipline,
            instances=self.instances,
            interference=self.interference,
        )

    def unloaded_ms(self, rng: np.random.Generator) -> list[Floats]:
        return [1000 * self.alone_works * draw(rng, 40) for draw in self.services]


def single(service: Service, sla: Sla, start_rps: float, **more: Any) -> Server:
    return Server((service,), (sla,), start_rps, **more)


def one_core(works_s: Mapping[float, float], start_rps: float, shares: tuple[float, ...]) -> Server:
    """Return a server whose models share a core. `works_s` maps the service time of each model in s
    to the SLA of the model in ms. Service times have a jitter of 5 %."""
    services = tuple(jittered(work_s) for work_s in works_s)
    slas = tuple(Sla(latency_ms=limit_ms) for limit_ms in works_s.values())
    return Server(services, slas, start_rps, shares=shares, instances=True)


def batches(largest: int) -> Server:
    """Return a server that forms batches of up to `largest` requests. A batch takes 4 ms plus 1 ms
    per request."""
    return single(
        deterministic(0.001),
        Sla(latency_ms=30),
        120,
        discipline=batching(largest, 0.002, 0.004),
        alone_works=7.0,
    )


# Partial functions instead of closures: only partial functions can be sent to other processes.


def jittered(mean_s: float) -> Service:
    """Return service times like those of a CNN: never shorter than `mean_s`, and mostly up to 5 %
    longer."""
    return partial(_jittered, mean_s)


def _jittered(mean_s: float, rng: np.random.Generator, n: int) -> Floats:
    return mean_s * (1 + 0.05 * np.abs(rng.standard_normal(n)))


def rarely_slow(mean_s: float) -> Service:
    """Return service times of which one in ten is eleven times as long as the others."""
    return partial(_rarely_slow, mean_s)


def _rarely_slow(mean_s: float, rng: np.random.Generator, n: int) -> Floats:
    return np.where(rng.random(n) < 0.9, 0.5, 5.5) * mean_s


def gamma(mean_s: float, variation: float) -> Service:
    """Return gamma-distributed service times with the coefficient of variation `variation`."""
    return partial(_gamma, mean_s, variation**-2)


def _gamma(mean_s: float, shape: float, rng: np.random.Generator, n: int) -> Floats:
    return rng.gamma(shape, mean_s / shape, n)


def lognormal(mean_s: float, sigma: float) -> Service:
    return partial(_lognormal, np.log(mean_s) - sigma**2 / 2, sigma)


def _lognormal(mu: float, sigma: float, rng: np.random.Generator, n: int) -> Floats:
    return rng.lognormal(mu, sigma, n)


def hyperexponential(mean_s: float) -> Service:
    """Return exponential service times: four in five with half the mean, and one in five with three
    times the mean."""
    return partial(_hyperexponential, mean_s)


def _hyperexponential(mean_s: float, rng: np.random.Generator, n: int) -> Floats:
    return rng.exponential(np.where(rng.random(n) < 0.8, 0.5, 3.0) * mean_s)


def rare_stalls(rng: np.random.Generator, n: int) -> Floats:
    """Return service times of 5 ms, plus 300 ms for every 500th request. A window begins at a
    random position between two stalls."""
    return stalling(0.005, 0.3, every=500)(rng, n + 500)[rng.integers(500) :][:n]


def rare_pauses(rng: np.random.Generator, n: int) -> Floats:
    """Return service times of 5 ms, plus 200 ms for one random request in 400."""
    return np.where(rng.random(n) < 1 / 400, 0.205, 0.005)


P50 = Sla(latency_ms=50)

KNOWN = {
    "M/M/1, 5 ms, p95 <= 50 ms": single(exponential(0.005), P50, 120),
    "M/D/1, 5 ms, p95 <= 50 ms": single(deterministic(0.005), P50, 120),
    "M/D/1, 25 ms, p95 <= 120 ms": single(deterministic(0.025), Sla(latency_ms=120), 24),
    "M/D/4, 20 ms, p95 <= 100 ms": single(
        deterministic(0.02), Sla(latency_ms=100), 120, discipline=workers(4)
    ),
    "M/M/2, 10 ms, p95 <= 60 ms": single(
        exponential(0.01), Sla(latency_ms=60), 120, discipline=workers(2)
    ),
    "6 ms with 5 % jitter, p95 <= 30 ms": single(jittered(0.006), Sla(latency_ms=30), 100),
    "one request in ten is slow, 5 ms, p95 <= 50 ms": single(rarely_slow(0.005), P50, 120),
    "batches of up to 8, p95 <= 30 ms": batches(8),
    "two models on one core, 4 and 12 ms, p95 <= 40 and 80 ms": one_core(
        {0.004: 40, 0.012: 80}, 80, (0.75, 0.25)
    ),
    "two models on one core, 5 and 25 ms, p95 <= 60 and 120 ms": one_core(
        {0.005: 60, 0.025: 120}, 70, (6 / 7, 1 / 7)
    ),
}

SHARED_OUT = "processor sharing, exponential service times, 5 ms, p95 <= 50 ms"
STALLS = "a stall of 300 ms every 500 requests, 5 ms, p95 <= 50 ms"
TIES = "two equal tenants, 5 ms, p95 <= 50 ms"
WANDERS = Host(deviation=0.08, memory_s=20)
GAPS = {
    SHARED_OUT: single(exponential(0.005), P50, 120, discipline=processor_sharing),
    STALLS: single(rare_stalls, P50, 120),
}
HELD_OUT = {
    "gamma work, deviation 0.5, 5 ms, p95 <= 50 ms": single(gamma(0.005, 0.5), P50, 120),
    "lognormal work, deviation 0.7, 5 ms, p99 <= 80 ms": single(
        lognormal(0.005, 0.63), Sla(percentile=99, latency_ms=80), 120
    ),
    "hyperexponential work, 5 ms, p95 <= 80 ms": single(
        hyperexponential(0.005), Sla(latency_ms=80), 120
    ),
    "M/D/2, 10 ms, p95 <= 60 ms": single(
        deterministic(0.01), Sla(latency_ms=60), 120, discipline=workers(2)
    ),
    "batches of up to 4, p95 <= 30 ms": batches(4),
    "processor sharing, 5 ms, p95 <= 50 ms": single(
        deterministic(0.005), P50, 120, discipline=processor_sharing
    ),
    "a pause of 200 ms after one request in 400, 5 ms, p95 <= 50 ms": single(rare_pauses, P50, 120),
    "gamma work on a host that drifts by 8 % within 20 s": single(
        gamma(0.005, 0.5), P50, 120, host=WANDERS
    ),
    TIES: Server((deterministic(0.005),) * 2, (P50,) * 2, 120, shares=(0.5, 0.5)),
}


BURSTS = {
    "5 ms with 5 % jitter on a host half as fast for 0.2 to 2 s": single(
        jittered(0.005), P50, 120, host=Host(0.04, 60, burst_every_s=12)
    ),
}
"""Servers on which the rule for windows with a temporary slowdown was developed. Such windows are
invalid."""


@dataclass(frozen=True)
class Found:
    """Findings of one search, and the true limit; rates in requests/s."""

    truth_rps: float
    estimate_rps: float
    certified_rps: float
    low_rps: float
    high_rps: float
    seconds: float

    @classmethod
    def of(cls, peak: Peak, truth_rps: float, seconds: float) -> Found:
        ends = np.quantile(peak.posterior, [0.025, 0.975]) if len(peak.posterior) else [np.nan] * 2
        low, high = map(float, ends)
        return cls(truth_rps, peak.estimate, peak.certified, low, high, seconds)


def limit_rps(server: Server) -> float:
    """Return the highest total rate at which every tenant keeps its SLA in a long simulation; the
    rate is exact within 0.1 %.

    The rate is the limit on a host with a constant speed.
    """

    def keeps_slas(rate_rps: float) -> bool:
        simulated = server.simulated(np.random.default_rng(0))
        return _keeps_slas(server, simulated, rate_rps, TRUTH_REQUESTS / rate_rps)

    return _limit_rps(server, keeps_slas)


def long_run_rps(server: Server) -> float:
    """Return the highest total rate at which every tenant keeps its SLA over `LONG_RUN_S` on the
    server's host, slow periods included."""
    assert server.host is not None
    factors = server.host.factors(np.random.default_rng([SEED, 2]), LONG_RUN_S)

    def keeps_slas(rate_rps: float) -> bool:
        simulated = server.simulated(np.random.default_rng(0))
        on_host = replace(simulated, slowness=as_recorded(STEP_S, factors))
        return _keeps_slas(server, on_host, rate_rps, LONG_RUN_S)

    return _limit_rps(server, keeps_slas)


def _limit_rps(server: Server, keeps_slas: Callable[[float], bool]) -> float:
    low, high = 0.0, 8 * server.start_rps
    while high - low > 0.001 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if keeps_slas(middle) else (low, middle)
    return (low + high) / 2


def _keeps_slas(
    server: Server, simulated: SimulatedServer, rate_rps: float, seconds: float
) -> bool:
    with simulated.offer(server.line.rates_rps(rate_rps), seconds) as load:
        tenants = zip(load.arrival_s, load.done_s, server.slas, strict=True)
        return all(
            np.mean(1000 * (done - arrival) > sla.latency_ms) <= sla.allowed
            for arrival, done, sla in tenants
        )


def passes(server: Server, rate_rps: float, seed: int) -> bool:
    """Return whether a certification window passes at this rate. An invalid window is repeated."""
    rng = np.random.default_rng([SEED, seed])
    lag_s, unloaded_ms = server.lag_per_request_s, server.unloaded_ms(rng)
    system = replace(server.simulated(rng), lag_per_request_s=lag_s)
    queue = VirtualQueue.of(unloaded_ms, [sla.latency_ms for sla in server.slas])
    model = LineModel(server.line, server.slas, system.arrivals, queue)
    names = ("tenant",) * len(server.slas)
    begun = _Search(system, model, QUICK, names, rate_rps, unloaded_ms, rng, lambda *_: None)
    return begun._measure(Phase.CERTIFY, rate_rps).verdict is Verdict.PASS


def search(server: Server, limit_rps: float, seed: int) -> tuple[Peak, Found]:
    """Run one search. On a host whose speed changes, the true limit is the limit at the median
    speed during the search."""
    rng = np.random.default_rng([SEED, seed])
    host_rng = np.random.default_rng([SEED, seed, 1])
    factors = server.host.factors(host_rng, LONGEST_S) if server.host else np.ones(1)
    slowness = as_recorded(STEP_S, factors) if server.host else even
    system = replace(
        server.simulated(rng), slowness=slowness, lag_per_request_s=server.lag_per_request_s
    )
    peak = find_peak(
        system,
        server.line,
        server.slas,
        QUICK,
        start=server.start_rps,
        unloaded_ms=server.unloaded_ms(rng),
        names=[f"tenant {i}" for i in range(len(server.services))],
        rng=rng,
    )
    slowed = float(np.median(factors[: int(system.offered_s / STEP_S) + 1])) ** SPEED_POWER
    return peak, Found.of(peak, limit_rps / slowed, system.offered_s)
