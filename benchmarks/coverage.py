"""Test whether 95 % intervals contain the true limit, in searches against simulated servers.

The searches run in virtual time with the preset `quick`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.drawn_servers import SLA_WORKS, WORK_S, drawn
from benchmarks.noise import recordings
from benchmarks.results import Goal, Row
from benchmarks.servers import (
    GAPS,
    HELD_OUT,
    KNOWN,
    QUICK,
    TIES,
    WANDERS,
    Found,
    Server,
    jittered,
    limit_rps,
    long_run_rps,
    passes,
    search,
    single,
)
from benchmarks.serving import Place, Say
from benchmarks.simulation import Host, RecordedHost, deterministic
from perseus.peak.stats import Floats
from perseus.study.sla import Sla

BENCHMARK = "coverage"
SEEDS, MORE_SEEDS = 100, 200
"""Each case in ORDINARY has SEEDS searches, and each other case has MORE_SEEDS searches."""

HOSTS: dict[str, Host | RecordedHost] = {
    "on a host that drifts by 8 % within 20 s": WANDERS,
    "on a host that drifts by 15 % within 5 min": Host(deviation=0.15, memory_s=300),
    "on a host half as fast for 0.2 to 2 s about every 12 s": Host(0.04, 60, burst_every_s=12),
} | {f"on a host with the recorded speed of {each.name}": each.as_host for each in recordings()}
"""Hosts whose speed changes. The key is the end of the name of the case. Example: on a host that
drifts by 8 % within 20 s, service times have a standard deviation of 8 % and a correlation time of
20 s."""

HELD_OUT_HOSTS = {
    "on a host a third as fast for 0.5 to 5 s about every 20 s": Host(0.04, 60, 20, (0.5, 5), 3),
    "on a host half as fast for 0.1 to 0.4 s about every 3 s": Host(0.04, 60, 3, (0.1, 0.4)),
}
"""Hosts on which other processes use the CPU in bursts. No rule of the method was tuned on these
hosts. The bursts change the speed so much that a host has no single limit: on the first host, the
limit at the usual speed is about four times the long-run limit; on the second host, every window
has a burst. An interval meets the goal if it contains a rate between the long-run limit and the
limit at the usual speed."""

SLOW_SLA = Sla(latency_ms=4000)
NOMINAL = Goal(">=", 0.95, "ours")
CALIBRATED = Goal("<=", 1.3, "ours")
WIDTH = "half-width / (1.96 x standard deviation) (lower is better)"
"""Mean half-width of the 95 % intervals, divided by 1.96 standard deviations of the estimates."""

ORDINARY = {
    **KNOWN,
    TIES: HELD_OUT[TIES],
    "a slow model, 0.6 s, p95 <= 4 s": single(deterministic(0.6), SLOW_SLA, 0.8),
    "mix 10 : 1 of service times of 6 ms and 0.6 s on one core, p95 <= 60 ms and 4 s": Server(
        (jittered(0.006), jittered(0.6)),
        (Sla(latency_ms=60), SLOW_SLA),
        8,
        shares=(10 / 11, 1 / 11),
        instances=True,
    ),
} | {
    f"{name}, {on}": replace(KNOWN[name], host=host)
    for on, host in (HOSTS | HELD_OUT_HOSTS).items()
    for name in ("M/D/1, 5 ms, p95 <= 50 ms", "6 ms with 5 % jitter, p95 <= 30 ms")
}

MM1 = "M/M/1, 5 ms, p95 <= 50 ms"
LATE = {
    f"{MM1}, each send is later by {lag_ms:g} ms per request in flight": replace(
        KNOWN[MM1], lag_per_request_s=lag_ms / 1000
    )
    for lag_ms in (0.05, 0.1, 0.15)
}
"""A p99 send lag above 1 ms makes a window invalid. Near the limit, hardly any window is invalid
with the shortest lag, the busier windows are invalid with the middle lag, and all windows are
invalid with the longest lag."""

DRAWN = ("random servers, {:g} to {:g} ms, p90, p95 or p99 <= {:g} to {:g} service times").format(
    *(1000 * work_s for work_s in WORK_S), *SLA_WORKS
)

CASES = {**ORDINARY, **GAPS, **LATE}


def run(at: Place, say: Say) -> Iterator[Row]:
    os.sched_setaffinity(0, [at.client_core, at.server_core])
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, server in CASES.items():
            limit, seeds = limit_rps(server), SEEDS if name in ORDINARY else MORE_SEEDS
            found = list(pool.map(partial(find, name, limit), range(seeds)))
            say(f"{name}: true limit {limit:.1f}/s, {seeds} searches")
            is_held_out = server.host in HELD_OUT_HOSTS.values()
            yield from rows_of(name, found, None if is_held_out else NOMINAL)
            if server.host is not None:
                yield from long_run_rows(name, found, long_run_rps(server))
            if name == MM1 or name in LATE:
                passed = pool.map(partial(passes, server, limit), range(MORE_SEEDS))
                yield Row(BENCHMARK, name, AT_THE_LIMIT, float(np.mean(list(passed))))
        found = list(pool.map(find_drawn, range(MORE_SEEDS)))
        say(f"{MORE_SEEDS} {DRAWN}")
        yield from rows_of(DRAWN, found, NOMINAL)


def find_drawn(seed: int) -> Found:
    server = drawn(seed)
    return search(server, limit_rps(server), seed)[1]


def find(name: str, limit: float, seed: int) -> Found:
    return search(CASES[name], limit, seed)[1]


def rows_of(name: str, found: list[Found], nominal: Goal | None) -> Iterator[Row]:
    truth, estimate, certified, low, high, seconds = (
        np.array([getattr(each, column) for each in found]) for column in Found.__annotations__
    )
    above = share_above(certified, truth)
    covered = float(np.mean((low <= truth) & (truth <= high)))
    wrong = Goal("<=", round(1 - QUICK.confidence, 3), "ours") if np.isfinite(above) else None
    for metric, value, goal in (
        ("share of certified rates above the truth (lower is better)", above, wrong),
        ("share of 95 % intervals that contain the truth (higher is better)", covered, nominal),
        ("mean of estimate / truth", float(np.nanmean(estimate / truth)), None),
        ("standard deviation of estimate / truth", float(np.nanstd(estimate / truth)), None),
        ("width of the interval / truth", float(np.nanmean((high - low) / truth)), None),
        (
            WIDTH,
            float(np.nanmean((high - low) / truth) / (2 * 1.96 * np.nanstd(estimate / truth))),
            CALIBRATED,
        ),
        ("certified / truth", float(np.nanmean(certified / truth)), None),
        ("share of searches that certify a rate", float(np.mean(~np.isnan(certified))), None),
        ("seconds of load", float(np.mean(seconds)), None),
    ):
        yield Row(BENCHMARK, name, metric, value, goal=goal)


def long_run_rows(name: str, found: list[Found], limit_rps: float) -> Iterator[Row]:
    """Yield the rows about the long-run limit of a host whose speed changes. Such a host has two
    true limits: the limit at the median speed during the search, which the other rows use, and the
    long-run limit, which includes all slow periods."""
    truth, low, high, certified = (
        np.array([getattr(each, column) for each in found])
        for column in ("truth_rps", "low_rps", "high_rps", "certified_rps")
    )
    above = share_above(certified, limit_rps)
    between = (low <= np.maximum(truth, limit_rps)) & (np.minimum(truth, limit_rps) <= high)
    for metric, value, goal in (
        ("long-run limit / median truth", limit_rps / float(np.median(truth)), None),
        ("share of certified rates above the long-run limit", above, None),
        (
            "share of 95 % intervals with a rate from long-run limit to truth (higher is better)",
            float(np.mean(between)),
            NOMINAL,
        ),
    ):
        yield Row(BENCHMARK, name, metric, value, goal=goal)


def share_above(certified_rps: Floats, limit_rps: Floats | float) -> float:
    """Return the share of the certified rates that exceed the limit; NaN if no search certifies a
    rate."""
    count = np.count_nonzero(np.isfinite(certified_rps))
    return np.count_nonzero(certified_rps > limit_rps) / count if count else np.nan


AT_THE_LIMIT = "share of certification windows at exactly the limit that pass"
