"""Do the intervals hold what they say? Many searches against simulated servers of known limit.

In virtual time, with the preset `quick`. Hosts have no part in it: only seeds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.queueing import Floats
from benchmarks.results import Goal, Row
from benchmarks.serving import SEED, Say
from perseus.load import LoadLine
from perseus.precision import PRESETS
from perseus.search import find_peak
from perseus.simulation import (
    Discipline,
    Service,
    SimulatedServer,
    batching,
    deterministic,
    exponential,
    one_worker,
    workers,
)
from perseus.window import Sla

BENCHMARK = "coverage"
SEEDS = 100
QUICK = PRESETS["quick"].settings
LINE = LoadLine((0.0,), (1.0,))
TRUTH_REQUESTS = 400_000


@dataclass(frozen=True)
class Server:
    """A simulated server: its work, its discipline, an SLA, and the rate that a search begins at.

    `alone_works` is what a request takes without load, in multiples of its work.
    """

    service: Service
    sla: Sla
    start_rps: float
    discipline: Discipline = one_worker
    alone_works: float = 1.0
    batching: bool = False


def jittered(mean_s: float) -> Service:
    """As a CNN's: hardly ever faster, now and then 5 % slower."""
    return lambda rng, n: mean_s * (1 + 0.05 * np.abs(rng.standard_normal(n)))


def rarely_slow(mean_s: float) -> Service:
    """One request in ten takes eleven times as long as the others."""
    return lambda rng, n: np.where(rng.random(n) < 0.9, 0.5, 5.5) * mean_s


SERVERS = {
    "M/M/1, 5 ms, p95 <= 50 ms": Server(exponential(0.005), Sla(95, 50), 120),
    "M/D/1, 5 ms, p95 <= 50 ms": Server(deterministic(0.005), Sla(95, 50), 120),
    "M/D/1, 25 ms, p95 <= 120 ms": Server(deterministic(0.025), Sla(95, 120), 24),
    "M/D/4, 20 ms, p95 <= 100 ms": Server(deterministic(0.02), Sla(95, 100), 120, workers(4)),
    "6 ms with 5 % jitter, p95 <= 30 ms": Server(jittered(0.006), Sla(95, 30), 100),
    "one request in ten slow, 5 ms, p95 <= 50 ms": Server(rarely_slow(0.005), Sla(95, 50), 120),
    "batches of up to 8, p95 <= 30 ms": Server(
        deterministic(0.001),
        Sla(95, 30),
        120,
        batching(8, 0.002, 0.004),
        alone_works=7.0,
        batching=True,
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
    """The rate at which the p95 of a long run reaches the SLA, to 0.1 %."""
    low, high = 0.0, 10_000.0
    while high - low > 0.001 * high:
        middle = (low + high) / 2
        if _late(server, middle) <= server.sla.allowed:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _late(server: Server, rate_rps: float) -> float:
    rng = np.random.default_rng(0)
    work_s = server.service(rng, TRUTH_REQUESTS)
    arrival_s: Floats = np.cumsum(rng.exponential(1 / rate_rps, TRUTH_REQUESTS))
    latency_ms = 1000 * (server.discipline(arrival_s, work_s) - arrival_s)
    return float(np.mean(latency_ms > server.sla.latency_ms))


def search(name: str, seed: int) -> Found:
    server, rng = SERVERS[name], np.random.default_rng([SEED, seed])
    system = SimulatedServer([server.service], rng, discipline=server.discipline)
    peak = find_peak(
        system,
        LINE,
        [server.sla],
        QUICK,
        start=server.start_rps,
        unloaded_ms=[1000 * server.alone_works * server.service(rng, 40)],
        names=["tenant"],
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
