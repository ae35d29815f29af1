"""Simulate the binary search of perf_analyzer over request rates in virtual time.

The rules come from the documentation and source of perf_analyzer:

- The search tests the lowest rate. If this rate passes, the search tests the highest rate. If the
  highest rate fails, the search halves the range until its width is at most `step_rps`.
- At each rate, the search runs windows of 5 s (default). It stops when the throughputs and the
  percentiles of the last three windows differ by at most 10 %, when the percentile of one of these
  three windows reaches the threshold, or after ten windows.
- A rate passes if the last three windows differ by at most 10 % and their joint percentile is below
  the threshold.
- The latency of a request starts at its actual send, and belongs to the window in which the
  response arrives.
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
"""Threads of perf_analyzer. Without --async, each thread sends one request at a time."""


@dataclass(frozen=True)
class Found:
    """The highest rate that passed (0 if no rate passed), and the requests and seconds of the
    search."""

    peak_rps: float
    requests: int
    seconds: float


@dataclass(frozen=True)
class Level:
    passed: bool
    requests: int
    seconds: float


def search(
    level: Callable[[float], Level], start_rps: float, end_rps: float, step_rps: float
) -> Found:
    """Return the highest passing rate between two given rates. The search stops if the lower end
    fails or the upper end passes."""
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
    """Options of perf_analyzer. `blocking` is true if perf_analyzer runs without --async, and
    `window_s` is the length of a window (-p)."""

    blocking: bool
    window_s: float = 5.0


def simulated_level(
    rate_rps: float, service: Service, sla: Sla, rng: np.random.Generator, mode: Mode
) -> Level:
    """Test one rate against a single-server queue that is idle at first."""
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
    """Return the send and completion times of requests if each thread waits for a response before
    its next send."""
    sent_s, done_s = np.empty(len(due_s)), np.empty(len(due_s))
    free_s = 0.0
    for i, due in enumerate(due_s):
        sent_s[i] = max(due, done_s[i - THREADS]) if i >= THREADS else due
        done_s[i] = free_s = max(sent_s[i], free_s) + work_s[i]
    return sent_s, done_s
