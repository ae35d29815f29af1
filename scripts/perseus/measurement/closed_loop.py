"""Run a closed-loop window, in which each tenant keeps a fixed number of requests in flight."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perseus.measurement.live_system import LiveSystem
from perseus.peak import stats
from perseus.peak.durations import grace_s, loop_s, settle_s
from perseus.peak.verdict import ON_IDLE_HOST, Tolerance, judge_each, without_sla
from perseus.peak.window import Window
from perseus.study.tasks.measure import MeasureTask


@dataclass(frozen=True)
class Throughput:
    """The throughput of one tenant in responses per second, with a 95 % interval.

    Each tenant has `concurrency` requests in flight.
    """

    concurrency: int
    tenant: str
    answered_rps: float
    low_rps: float
    high_rps: float


def closed_loop(
    task: MeasureTask,
    system: LiveSystem,
    phase: str,
    concurrency: int,
    tolerance: Tolerance = ON_IDLE_HOST,
) -> tuple[Window, list[Throughput]]:
    """Run a window in which each tenant keeps `concurrency` requests in flight. Return the window,
    and each tenant's throughput after the settling time."""
    settle, grace = settle_s(task.search, task.slas), grace_s(task.slas)
    elapsed_s = loop_s(task.search, task.slas)
    with system.offer_closed([concurrency] * len(task.slas), elapsed_s) as load:
        seen = load.until(elapsed_s)
    settled_ns = seen.start_ns + round(settle * 1e9)
    throughputs = []
    for name, requests in zip(task.tenant_names, seen.requests, strict=True):
        rate = answered_rps(requests.done_ns[requests.answered], settled_ns, seen.now_ns)
        throughputs.append(Throughput(concurrency, name, rate.value, rate.low, rate.high))
    tenants = judge_each(
        seen,
        task.slas,
        [each.answered_rps for each in throughputs],
        settle_s=settle,
        grace_s=grace,
        confidence=task.search.confidence,
        tolerance=tolerance,
    )
    tenants = tuple(map(without_sla, tenants))
    window = Window(phase, float(concurrency), settle, elapsed_s, tenants, seen)
    return window, throughputs


def answered_rps(done_ns: NDArray[np.int64], start_ns: int, end_ns: int) -> stats.Interval:
    """Return the responses per second between two times, with a 95 % interval by batch means."""
    edges = np.linspace(start_ns, end_ns, stats.BATCHES + 1)
    counts = np.histogram(done_ns, edges)[0]
    return stats.mean_interval(counts / np.diff(edges) * 1e9)
