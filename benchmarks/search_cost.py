"""Compare searches for the peak: their requests, their seconds, and the error of the peak.

The searches run in virtual time against simulated servers, with many seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks import peer_search, queueing, ramp
from benchmarks.peer_search import Mode
from benchmarks.perf_analyzer import NAME
from benchmarks.results import Goal, Row
from benchmarks.serving import SEED, Place, Say
from benchmarks.simulation import Service, SimulatedServer, deterministic, exponential
from perseus.peak.load_line import LoadLine
from perseus.peak.search import find_peak
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla

BENCHMARK = "search"
LINE = LoadLine((0.0,), (1.0,))
SEEDS = 40
START = 0.6
"""Start rate of Perseus's search as a share of 1 / service time, as in the experiment `peak`."""
RAMP_STEP = 1 / 32
"""Step of the ramp as a share of 1 / service time. With this step, a ramp has about 27 passes, the
smallest number in its published logs."""
RANGE, STEP = (0.3, 1.2), 0.01
"""Range and step of the search of perf_analyzer, as shares of 1 / service time."""
MODES = {
    NAME: Mode(blocking=True),
    f"{NAME} --async": Mode(blocking=False),
    f"{NAME} --async -p 30000": Mode(blocking=False, window_s=30),
}
BEST_MODE = f"{NAME} --async -p 30000"
"""The only mode of perf_analyzer whose peaks are near the truth. In the other modes, perf_analyzer
reports most rates as unstable, or accepts all rates.
"""
RAMP = "2020 ramp"
REQUESTS = "requests per search (lower is better)"
SECONDS = "seconds per search (lower is better)"
ERROR = "median |peak / truth - 1| (lower is better)"


@dataclass(frozen=True)
class Case:
    """A simulated server with one worker, and its SLA."""

    name: str
    service: Service
    mean_s: float
    sla: Sla


CASES = (
    Case(
        "simulated M/D/1, 25 ms, p95 <= 120 ms",
        deterministic(0.025),
        0.025,
        Sla(latency_ms=120),
    ),
    Case(
        "simulated M/D/1, 6 ms, p95 <= 30 ms",
        deterministic(0.006),
        0.006,
        Sla(latency_ms=30),
    ),
    Case(
        "simulated M/M/1, 5 ms, p95 <= 50 ms",
        exponential(0.005),
        0.005,
        Sla(latency_ms=50),
    ),
)


@dataclass(frozen=True)
class Cost:
    """Requests, seconds and error |peak / truth - 1| of a search. For many searches, requests and
    seconds are means, and the error is the median."""

    requests: float
    seconds: float
    error: float

    @classmethod
    def mean(cls, costs: Sequence[Cost]) -> Cost:
        return cls(
            float(np.mean([cost.requests for cost in costs])),
            float(np.mean([cost.seconds for cost in costs])),
            float(np.median([cost.error for cost in costs])),
        )


def run(at: Place, say: Say) -> Iterator[Row]:
    for case in CASES:
        say(f"{case.name}: {SEEDS} searches of each kind in virtual time")
        yield from rows_of(case, SEEDS)


def rows_of(case: Case, seeds: int) -> Iterator[Row]:
    limit_rps = queueing.limit_rps(case.service, case.sla)

    def mean(search: Callable[[np.random.Generator], Cost]) -> Cost:
        return Cost.mean([search(np.random.default_rng([SEED, seed])) for seed in range(seeds)])

    ours = {
        preset: mean(partial(_perseus, case, preset, limit_rps)) for preset in ("quick", "standard")
    }
    peers = {RAMP: mean(partial(ramp_cost, case, limit_rps))} | {
        name: mean(partial(_perf_analyzer, case, mode, limit_rps)) for name, mode in MODES.items()
    }
    for preset, cost in ours.items():
        for name, theirs in peers.items():
            yield from cost_rows(f"{case.name}, {preset}", cost, name, theirs, preset == "quick")


def cost_rows(
    case: str, ours: Cost, peer_name: str, theirs: Cost, goals: bool = True
) -> Iterator[Row]:
    """Yield the requests, seconds and errors of two searches. Goals compare Perseus with the ramp
    and with BEST_MODE only."""
    requests, seconds, error = None, None, None
    if goals and peer_name == RAMP:
        condition = "a median error of Perseus of at most 3 %"
        requests = Goal("<=", 1 / 20, condition=condition, holds=ours.error <= 0.03)
        error = Goal("<=", 0.03, "ours")
    if goals and peer_name == BEST_MODE:
        seconds = no_less_exact(ours, theirs)
    yield Row(BENCHMARK, case, REQUESTS, ours.requests, theirs.requests, peer_name, requests)
    yield Row(BENCHMARK, case, SECONDS, ours.seconds, theirs.seconds, peer_name, seconds)
    yield Row(BENCHMARK, case, ERROR, ours.error, theirs.error, peer_name, error)


def no_less_exact(ours: Cost, theirs: Cost) -> Goal:
    """Return the goal that `ours` takes at most half the seconds of `theirs`, and that the error of
    `ours` is at most the error of `theirs`."""
    holds = ours.error <= theirs.error
    return Goal("<=", 1 / 2, condition="a median error of at most that of the peer", holds=holds)


def _perseus(case: Case, preset: str, limit_rps: float, rng: np.random.Generator) -> Cost:
    server = SimulatedServer([case.service], rng)
    settings = PRESETS[preset].settings
    peak = find_peak(
        server,
        LINE,
        [case.sla],
        settings,
        start=START / case.mean_s,
        unloaded_ms=[1000 * case.service(rng, 40)],
        names=["tenant"],
        rng=rng,
    )
    return Cost(server.offered_requests, server.offered_s, error(peak.estimate, limit_rps))


def ramp_cost(case: Case, limit_rps: float, rng: np.random.Generator) -> Cost:
    found = ramp.climb(
        lambda rate_rps: ramp.simulated_pass(rate_rps, case.service, rng),
        ramp_rates_rps(case.mean_s),
        case.sla,
    )
    return Cost(found.requests, found.seconds, error(found.peak_rps, limit_rps))


def ramp_rates_rps(mean_s: float) -> list[float]:
    """Return rates up to twice the maximum throughput of the server. The ramp ends long before the
    highest rate."""
    return [float(rate) for rate in np.arange(RAMP_STEP, 2, RAMP_STEP) / mean_s]


def _perf_analyzer(case: Case, mode: Mode, limit_rps: float, rng: np.random.Generator) -> Cost:
    found = peer_search.search(
        lambda rate_rps: peer_search.simulated_level(rate_rps, case.service, case.sla, rng, mode),
        *(share / case.mean_s for share in (*RANGE, STEP)),
    )
    return Cost(found.requests, found.seconds, error(found.peak_rps, limit_rps))


def error(peak_rps: float, limit_rps: float) -> float:
    """Return |peak / limit - 1|, or infinity if the search found no peak."""
    return abs(peak_rps / limit_rps - 1) if math.isfinite(peak_rps) else math.inf
