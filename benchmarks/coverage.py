"""Do the intervals hold what they say? Many searches against simulated servers of known limit.

In virtual time, with the preset `quick`. Hosts have no part in it: only seeds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.results import Goal, Row
from benchmarks.serving import SEED, Say
from benchmarks.simulation import (
    Discipline,
    Service,
    SimulatedServer,
    batching,
    deterministic,
    exponential,
    workers,
)
from perseus.peak.lindley import departures_s
from perseus.peak.load_line import LoadLine
from perseus.peak.search import find_peak
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla

BENCHMARK = "coverage"
SEEDS = 100
QUICK = PRESETS["quick"].settings
TRUTH_REQUESTS = 400_000


@dataclass(frozen=True)
class Server:
    """A simulated server: work, SLA and share of the load of each tenant, and its discipline.

    `start_rps` is the rate of all tenants that a search begins at, `alone_works` what a request
    takes without load, in multiples of its work. With `instances` the tenants share a core.
    """

    services: tuple[Service, ...]
    slas: tuple[Sla, ...]
    start_rps: float
    shares: tuple[float, ...] = (1.0,)
    discipline: Discipline = departures_s
    instances: bool = False
    alone_works: float = 1.0
    batching: bool = False

    @property
    def line(self) -> LoadLine:
        """Its scale is the rate of all tenants."""
        return LoadLine((0.0,) * len(self.shares), self.shares)

    def simulated(self, rng: np.random.Generator) -> SimulatedServer:
        return SimulatedServer(
            self.services, rng, discipline=self.discipline, instances=self.instances
        )


def single(service: Service, sla: Sla, start_rps: float, **more: Any) -> Server:
    return Server((service,), (sla,), start_rps, **more)


def jittered(mean_s: float) -> Service:
    """As a CNN's: hardly ever faster, now and then 5 % slower."""
    return lambda rng, n: mean_s * (1 + 0.05 * np.abs(rng.standard_normal(n)))


def rarely_slow(mean_s: float) -> Service:
    """One request in ten takes eleven times as long as the others."""
    return lambda rng, n: np.where(rng.random(n) < 0.9, 0.5, 5.5) * mean_s


SERVERS = {
    "M/M/1, 5 ms, p95 <= 50 ms": single(exponential(0.005), Sla(latency_ms=50), 120),
    "M/D/1, 5 ms, p95 <= 50 ms": single(deterministic(0.005), Sla(latency_ms=50), 120),
    "M/D/1, 25 ms, p95 <= 120 ms": single(deterministic(0.025), Sla(latency_ms=120), 24),
    "M/D/4, 20 ms, p95 <= 100 ms": single(
        deterministic(0.02), Sla(latency_ms=100), 120, discipline=workers(4)
    ),
    "M/M/2, 10 ms, p95 <= 60 ms": single(
        exponential(0.01), Sla(latency_ms=60), 120, discipline=workers(2)
    ),
    "6 ms with 5 % jitter, p95 <= 30 ms": single(jittered(0.006), Sla(latency_ms=30), 100),
    "one request in ten slow, 5 ms, p95 <= 50 ms": single(
        rarely_slow(0.005), Sla(latency_ms=50), 120
    ),
    "batches of up to 8, p95 <= 30 ms": single(
        deterministic(0.001),
        Sla(latency_ms=30),
        120,
        discipline=batching(8, 0.002, 0.004),
        alone_works=7.0,
        batching=True,
    ),
    "two models on one core, 4 and 12 ms, p95 <= 40 and 80 ms": Server(
        (jittered(0.004), jittered(0.012)),
        (Sla(latency_ms=40), Sla(latency_ms=80)),
        80,
        shares=(0.75, 0.25),
        instances=True,
    ),
    "two models on one core, 5 and 25 ms, p95 <= 60 and 120 ms": Server(
        (jittered(0.005), jittered(0.025)),
        (Sla(latency_ms=60), Sla(latency_ms=120)),
        70,
        shares=(6 / 7, 1 / 7),
        instances=True,
    ),
}


@dataclass(frozen=True)
class Found:
    """What one search found; rates in requests/s."""

    estimate_rps: float
    certified_rps: float
    low_rps: float
    high_rps: float
    seconds: float


def run(say: Say) -> Iterator[Row]:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name in SERVERS:
            limit = limit_rps(SERVERS[name])
            found = list(pool.map(partial(search, name), range(SEEDS)))
            say(f"{name}: true limit {limit:.1f}/s, {SEEDS} searches")
            yield from rows_of(name, limit, found)


def limit_rps(server: Server) -> float:
    """The rate above which some tenant's p95 of a long run exceeds its SLA, to 0.1 %."""
    low, high = 0.0, 8 * server.start_rps
    while high - low > 0.001 * high:
        middle = (low + high) / 2
        if _keeps_slas(server, middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _keeps_slas(server: Server, rate_rps: float) -> bool:
    simulated, seconds = server.simulated(np.random.default_rng(0)), TRUTH_REQUESTS / rate_rps
    with simulated.offer(server.line.rates_rps(rate_rps), seconds) as load:
        tenants = zip(load.arrival_s, load.done_s, server.slas, strict=True)
        return all(
            np.mean(1000 * (done - arrival) > sla.latency_ms) <= sla.allowed
            for arrival, done, sla in tenants
        )


def search(name: str, seed: int) -> Found:
    server, rng = SERVERS[name], np.random.default_rng([SEED, seed])
    system = server.simulated(rng)
    peak = find_peak(
        system,
        server.line,
        server.slas,
        QUICK,
        start=server.start_rps,
        unloaded_ms=[1000 * server.alone_works * draw(rng, 40) for draw in server.services],
        names=[f"tenant {i}" for i in range(len(server.services))],
        rng=rng,
        batching=server.batching,
    )
    ends = np.quantile(peak.posterior, [0.025, 0.975]) if len(peak.posterior) else (np.nan, np.nan)
    low, high = map(float, ends)
    return Found(peak.estimate, peak.certified, low, high, system.offered_s)


def rows_of(name: str, limit: float, found: list[Found]) -> Iterator[Row]:
    estimate, certified, low, high, seconds = (
        np.array([getattr(each, column) for each in found]) for column in Found.__annotations__
    )
    above = float(np.mean(certified > limit))
    covered = float(np.mean((low <= limit) & (limit <= high)))
    wrong = Goal("<=", round(1 - QUICK.confidence, 3), "ours")
    for metric, value, goal in (
        ("share of certified rates above the truth (lower is better)", above, wrong),
        ("share of 95 % intervals with the truth (higher is better)", covered, NOMINAL),
        ("mean of estimate / truth", float(np.nanmean(estimate)) / limit, None),
        ("its standard deviation", float(np.nanstd(estimate)) / limit, None),
        ("width of the interval / truth", float(np.nanmean(high - low)) / limit, None),
        ("certified / truth", float(np.nanmean(certified)) / limit, None),
        ("share of searches that certify a rate", float(np.mean(~np.isnan(certified))), None),
        ("seconds of load", float(np.mean(seconds)), None),
    ):
        yield Row(BENCHMARK, name, metric, value, goal=goal)


NOMINAL = Goal(">=", 0.95, "ours")
