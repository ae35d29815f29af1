"""Run the searches of `search_cost` against one real server whose service time is known.

A whole ramp (the search of the 2020 client) would take about 45 minutes. The benchmark therefore
simulates the same queue to count the passes of the ramp, and runs only the passes at PASSES on the
real server. During a search, the speed of the host changes, and therefore the true limit changes.
The true limit of a search is therefore the limit for the mean of the service times just before and
just after the search.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks import aiperf, queueing, ramp
from benchmarks.aiperf import AIPerf
from benchmarks.models import Sleep
from benchmarks.perf_analyzer import NAME, PerfAnalyzer
from benchmarks.results import Row
from benchmarks.search_cost import (
    BENCHMARK,
    ERROR,
    LINE,
    RAMP,
    RANGE,
    START,
    STEP,
    Case,
    Cost,
    cost_rows,
    error,
    no_less_exact,
    ramp_cost,
)
from benchmarks.serving import SEED, Known, Place, Say, sleeping
from benchmarks.simulation import deterministic
from perseus.measurement.progress.messages import describe_window
from perseus.peak.search import find_peak
from perseus.serving.statistics import server_times
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla

SERVER = Sleep(service_ms=5)
SLA = Sla(latency_ms=50)
MODE = f"{NAME} --async"
SEARCHES = 3
"""Number of searches of Perseus. Searches of the other tools take too long to repeat."""
PASSES = (1.0, 1.1)
"""Rates of the passes of the ramp, as shares of the true limit."""
PROBE_REQUESTS = 1000
"""Number of requests of a probe of AIPerf, as in the examples of its documentation."""


def run(at: Place, peer: PerfAnalyzer, second: AIPerf, say: Say) -> Iterator[Row]:
    with sleeping(at, SERVER) as known:
        mean_s = known.service_ms / 1000
        service = deterministic(mean_s)
        case = Case(f"live server, {SERVER.service_ms:g} ms, p95 <= 50 ms", service, mean_s, SLA)
        limit_rps = _limit_rps(known, known.service_ms)
        say(f"{case.name}: {known.service_ms:.3f} ms per request, true limit {limit_rps:.1f}/s")
        ours = _perseus(known, say)
        counted = ramp_cost(case, limit_rps, np.random.default_rng(SEED))
        name = f"{case.name}, quick"
        rows = cost_rows(name, ours, RAMP, counted)
        yield from (row for row in rows if row.metric != ERROR)
        yield _ramp_error(known, name, ours, say)
        yield from _against(name, ours, MODE, _perf_analyzer(at, peer, known, say))
        yield from _against(name, ours, aiperf.NAME, _aiperf(second, known, say))


def _against(case: str, ours: Cost, peer_name: str, theirs: Cost) -> Iterator[Row]:
    for row in cost_rows(case, ours, peer_name, theirs, goals=False):
        goal = no_less_exact(ours, theirs) if row.metric.startswith("seconds") else None
        yield Row(row.benchmark, case, row.metric, row.ours, row.peer, peer_name, goal)


def _limit_rps(known: Known, *service_ms: float) -> float:
    """Return the true limit for the mean of the given service times."""
    service = deterministic(float(np.mean(service_ms)) / 1000)
    return queueing.limit_rps(service, SLA, known.overhead_ms)


def _limit_until_now_rps(known: Known, before_ms: float, say: Say) -> float:
    """Measure the service time again, and return the true limit for the mean of `before_ms` and the
    new service time."""
    now_ms = known.service_now_ms()
    limit_rps = _limit_rps(known, before_ms, now_ms)
    say(f"service times {before_ms:.3f} and {now_ms:.3f} ms: limit for the mean {limit_rps:.1f}/s")
    return limit_rps


def _perseus(known: Known, say: Say) -> Cost:
    costs = []
    for number in range(SEARCHES):
        before_ms = known.service_now_ms()
        before = server_times(known.server, known.model).requests
        start_s = time.monotonic()
        peak = find_peak(
            known.system,
            LINE,
            [SLA],
            PRESETS["quick"].settings,
            start=START * 1000 / known.service_ms,
            unloaded_ms=[known.alone_ms],
            names=[known.model],
            rng=np.random.default_rng([SEED, number]),
            on_window=lambda window, left_s: say(describe_window(window, [known.model], left_s)),
        )
        seconds = time.monotonic() - start_s
        requests = server_times(known.server, known.model).requests - before
        say(f"Perseus: {peak.estimate:.1f}/s after {requests} requests, {seconds:.0f} s")
        limit_rps = _limit_until_now_rps(known, before_ms, say)
        costs.append(Cost(requests, seconds, error(peak.estimate, limit_rps)))
    return Cost.mean(costs)


def _ramp_error(known: Known, case: str, ours: Cost, say: Say) -> Row:
    rng = np.random.default_rng(SEED)
    before_ms = known.service_now_ms()
    first_rps = _limit_rps(known, before_ms)
    found = ramp.climb(
        lambda rate_rps: ramp.live_pass(known.server.grpc_address, known.model, rate_rps, rng),
        [share * first_rps for share in PASSES],
        SLA,
    )
    say(f"ramp: {found.peak_rps:.1f}/s in {found.passes} passes, {found.seconds:.0f} s")
    shares = " and ".join(f"{share:.0%}" for share in PASSES)
    name = f"{RAMP}, only its passes at {shares} of the true limit"
    limit_rps = _limit_until_now_rps(known, before_ms, say)
    return Row(BENCHMARK, case, ERROR, ours.error, error(found.peak_rps, limit_rps), name)


def _perf_analyzer(at: Place, peer: PerfAnalyzer, known: Known, say: Say) -> Cost:
    most_rps = 1000 / known.service_ms
    start, end, step = (share * most_rps for share in (*RANGE, STEP))
    options = [f"--request-rate-range={start:.3f}:{end:.3f}:{step:.3f}", "--binary-search"]
    options += ["--request-distribution=poisson", f"--latency-threshold={SLA.latency_ms:.0f}"]
    options += [f"--percentile={SLA.percentile:.0f}", "--async"]
    before_ms = known.service_now_ms()
    before = server_times(known.server, known.model).requests
    report = peer.run(known.server.grpc_address, known.model, options, at.folder)
    requests = server_times(known.server, known.model).requests - before
    peak_rps = max((level.load for level in report.levels), default=0.0)
    say(f"{MODE}: {peak_rps:.1f}/s after {requests} requests, {report.wall_s:.0f} s")
    limit_rps = _limit_until_now_rps(known, before_ms, say)
    return Cost(requests, report.wall_s, error(peak_rps, limit_rps))


def _aiperf(peer: AIPerf, known: Known, say: Say) -> Cost:
    """Search with AIPerf for the boundary of the SLA, over whole numbers of requests/s in the range
    of perf_analyzer's search."""
    most_rps = 1000 / known.service_ms
    start, end = (round(share * most_rps) for share in RANGE)
    options = ["--search-planner", "monotonic-sla", "--search-max-iterations", "40"]
    options += ["--search-space", f"phases.profiling.rate:{start},{end}:int"]
    options += ["--search-metric", "request_throughput", "--search-direction", "maximize"]
    options += ["--search-sla", f"request_latency:p{SLA.percentile:g}:lt:{SLA.latency_ms:g}"]
    options += ["--request-rate", str(start), "--arrival-pattern", "poisson"]
    options += ["--request-count", str(PROBE_REQUESTS)]
    before_ms = known.service_now_ms()
    before = server_times(known.server, known.model).requests
    found = peer.search(known.server.http_address, known.model, (1, 1), options)
    requests = server_times(known.server, known.model).requests - before
    say(f"{aiperf.NAME}: {found.peak_rps:.1f}/s after {requests} requests, {found.wall_s:.0f} s")
    limit_rps = _limit_until_now_rps(known, before_ms, say)
    return Cost(requests, found.wall_s, error(found.peak_rps, limit_rps))
