"""perf_analyzer's binary search over request rates, modelled in virtual time.

Its rules, from its documentation and source: the two ends first, then halves until they are within
`step`. At a rate, windows (of 5 s by default) follow each other, at most ten, until the last three
agree within 10 % in throughput and in the percentile. A rate passes if they do and the percentile
of the three together is below the threshold. Latency counts from the actual send, in the window in
which the answer comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation import Service
from perseus.peak import stats
from perseus.peak.lindley import departures_s
from perseus.peak.stats import Floats
from perseus.study.sla import Sla

TRIALS = 10
LAST = 3
AGREEMENT = 1.1
THREADS = 4
"""That send, each one request at a time, unless --async is given."""


@dataclass(frozen=True)
class Found:
    """The highest rate that passed, 0 if none did, and what the search took."""

    peak_rps: float
    requests: int
    seconds: float


@dataclass(frozen=True)
class Level:
    """The outcome at one rate."""

    passed: bool
    requests: int
    seconds: float


def search(
    level: Callable[[float], Level], start_rps: float, end_rps: float, step_rps: float
) -> Found:
    """The highest passing rate between the ends; without one, or with no failing one, it stops."""
    tried = {start_rps: level(start_rps)}
    if tried[start_rps].passed:
        tried[end_rps] = level(end_rps)
        low, high = start_rps, end_rps
        while not tried[end_rps].passed and high - low > step_rps:
            middle = (low + high) / 2
            tried[middle] = level(middle)
            low, high = (middle, high) if tried[middle].passed else (low, middle)
    peak_rps = max((rate for rate, seen in tried.items() if seen.passed), default=0.0)
    requests = sum(seen.requests for seen in tried.values())
    return Found(peak_rps, requests, sum(seen.seconds for seen in tried.values()))


@dataclass(frozen=True)
class Mode:
    """How it is run: `blocking` unless --async is given, and the length of a window (-p)."""

    blocking: bool
    window_s: float = 5.0


def simulated_level(
    rate_rps: float, service: Service, sla: Sla, rng: np.random.Generator, mode: Mode
) -> Level:
    """One rate against a single-server queue that is idle at first."""
    end_s = TRIALS * mode.window_s
    due_s = np.cumsum(rng.exponential(1 / rate_rps, int(1.2 * rate_rps * end_s) + 50))
    work_s = service(rng, len(due_s))
    if mode.blocking:
        sent_s, done_s = _blocking(due_s, work_s)
    else:
        sent_s, done_s = due_s, departures_s(due_s, work_s)
    window = (done_s / mode.window_s).astype(int)
    latencies_ms = [(done_s - sent_s)[window == trial] * 1000 for trial in range(TRIALS)]
    for trials in range(LAST, TRIALS + 1):
        last = latencies_ms[trials - LAST : trials]
        stable = _stable(last, sla.percentile)
        if stable or any(stats.percentile(w, sla.percentile) >= sla.latency_ms for w in last):
            break
    together_ms = stats.percentile(np.concatenate(last), sla.percentile)
    seconds = trials * mode.window_s
    return Level(stable and together_ms < sla.latency_ms, int(np.sum(sent_s < seconds)), seconds)


def _stable(windows: list[Floats], percent: float) -> bool:
    counts = [len(w) for w in windows]
    tails_ms = [stats.percentile(w, percent) for w in windows]
    return min(counts) > 0 and all(max(x) / min(x) <= AGREEMENT for x in (counts, tails_ms))


def _blocking(due_s: Floats, work_s: Floats) -> tuple[Floats, Floats]:
    """When requests are sent and done if a thread waits for its answer before it sends again."""
    sent_s, done_s = np.empty(len(due_s)), np.empty(len(due_s))
    free_s = 0.0
    for i, due in enumerate(due_s):
        sent_s[i] = max(due, done_s[i - THREADS]) if i >= THREADS else due
        done_s[i] = free_s = max(sent_s[i], free_s) + work_s[i]
    return sent_s, done_s
