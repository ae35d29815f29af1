"""Compare percentiles from Perseus and perf_analyzer with the true percentiles of known queues.

perf_analyzer runs with its defaults (four threads, each with one blocking call) and with --async.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import queueing
from benchmarks.models import Sleep
from benchmarks.perf_analyzer import NAME, PerfAnalyzer, Report
from benchmarks.results import Goal, Row
from benchmarks.serving import Known, Place, Say, sleeping
from benchmarks.simulation import Service, deterministic
from perseus.peak.durations import ATTEMPTS, grace_s
from perseus.peak.verdict import TenantWindow, Verdict, judge
from perseus.study.sla import Sla

BENCHMARK = "honesty"
MODES = {NAME: (), f"{NAME} --async": ("--async",)}
SETTLE_S, OVERLOAD_S = 3.0, 40.0
PERCENTILE_S = 240.0
"""Near the limit, latencies stay correlated for seconds, so a short window gives a random
percentile."""
ERROR = Goal("<=", 0.1, "ours")
STALL_RPS = 100.0
NEAR_LIMIT, OVERLOAD = 0.85, 1.1
"""Offered loads as shares of the maximum throughput of the server."""


@dataclass(frozen=True)
class Seen:
    """Result of a tool at one load: a percentile (NaN if unknown), and whether the load is stable.

    `low_ms` and `high_ms` are the ends of the 95 % interval of the p95, NaN without an interval.
    """

    percentile_ms: float
    stable: bool
    low_ms: float = math.nan
    high_ms: float = math.nan


def run(at: Place, peer: PerfAnalyzer, say: Say) -> Iterator[Row]:
    stall = Sleep(service_ms=5, stall_every=500, stall_ms=300)
    with sleeping(at, stall) as known:
        service = queueing.stalling(
            known.service_ms / 1000, stall.stall_ms / 1000, stall.stall_every
        )
        case = f"a stall of 300 ms every 500 requests, {STALL_RPS:g} requests/s"
        yield from _percentile(at, peer, say, known, case, STALL_RPS, service, 99)
    with sleeping(at, Sleep(service_ms=5)) as known:
        service = deterministic(known.service_ms / 1000)
        capacity_rps = 1000 / known.service_ms
        case = f"Poisson load at {NEAR_LIMIT:.0%} of the server's limit"
        yield from _percentile(at, peer, say, known, case, NEAR_LIMIT * capacity_rps, service, 95)
        yield from _overload(at, peer, say, known, OVERLOAD * capacity_rps)


def _percentile(
    at: Place,
    peer: PerfAnalyzer,
    say: Say,
    known: Known,
    case: str,
    rate_rps: float,
    service: Service,
    percent: int,
) -> Iterator[Row]:
    true_ms = queueing.percentile_ms(rate_rps, service, percent, known.overhead_ms)
    say(f"{case}: the true p{percent} is {true_ms:.1f} ms")
    ours = _perseus(known, rate_rps, Sla(percentile=percent, latency_ms=true_ms), PERCENTILE_S)
    say(f"Perseus measures {ours.percentile_ms:.1f} ms")
    if percent == 95:
        say(f"the interval of Perseus is {ours.low_ms:.1f} to {ours.high_ms:.1f} ms")
        covered = ours.low_ms <= true_ms <= ours.high_ms
        metric = "the 95 % interval of the p95 contains the true p95, 1 = yes (higher is better)"
        yield Row(BENCHMARK, case, metric, covered, goal=Goal(">=", 1, "ours"))
    metric = f"relative error of the p{percent} (lower is better)"
    for name, mode in MODES.items():
        theirs = _perf_analyzer(at, peer, known, rate_rps, percent, mode)
        say(f"{name} measures {theirs.percentile_ms:.1f} ms")
        label = name if theirs.stable else f"{name}: no stable result"
        our_error, their_error = (abs(seen.percentile_ms / true_ms - 1) for seen in (ours, theirs))
        yield Row(BENCHMARK, case, metric, our_error, their_error, label, ERROR)


def _overload(
    at: Place, peer: PerfAnalyzer, say: Say, known: Known, rate_rps: float
) -> Iterator[Row]:
    case = f"Poisson load at {OVERLOAD:.0%} of the server's limit"
    metric = "the overloaded server is reported as stable, 1 = yes (lower is better)"
    ours = _perseus(known, rate_rps, Sla(latency_ms=50), OVERLOAD_S)
    say(f"{case}: Perseus calls the load {'stable' if ours.stable else 'too much'}")
    for name, mode in MODES.items():
        theirs = _perf_analyzer(at, peer, known, rate_rps, 95, mode)
        say(f"{name} calls the load {'stable' if theirs.stable else 'unstable'}")
        goal = Goal("<=", 0, "ours")
        yield Row(BENCHMARK, case, metric, ours.stable, theirs.stable, name, goal)


def _perseus(known: Known, rate_rps: float, sla: Sla, seconds: float) -> Seen:
    for _ in range(ATTEMPTS):  # a search also repeats invalid windows
        window = observe(known, rate_rps, sla, seconds)
        if window.verdict is not Verdict.INVALID:
            stable = window.verdict is Verdict.PASS
            ends_ms = (window.p95_low_ms, window.p95_high_ms)
            return Seen(window.sla_percentile_ms, stable, *ends_ms)
    return Seen(math.nan, False)


def observe(known: Known, rate_rps: float, sla: Sla, seconds: float) -> TenantWindow:
    """Run one window of Perseus, and return its result and the verdict that a search would give."""
    with known.system.offer([rate_rps], seconds) as load:
        return judge(
            load.until(seconds),
            0,
            sla,
            rate_rps=rate_rps,
            settle_s=SETTLE_S,
            grace_s=grace_s((sla,)),
            confidence=0.95,
        )


def _perf_analyzer(
    at: Place,
    peer: PerfAnalyzer,
    known: Known,
    rate_rps: float,
    percent: int,
    mode: tuple[str, ...],
) -> Seen:
    options = [f"--request-rate-range={rate_rps:.3f}", "--request-distribution=poisson"]
    options += [f"--percentile={percent}", *mode]
    return seen(peer.run(known.server.grpc_address, known.model, options, at.folder), percent)


def seen(report: Report, percent: int) -> Seen:
    """Return the percentile of the latency in a report of perf_analyzer, and whether the load is
    stable. The report has no percentile of an unstable load."""
    if not report.levels:
        return Seen(math.nan, False)
    (level,) = report.levels
    return Seen({95: level.p95_ms, 99: level.p99_ms}[percent], True)
