"""Experiment `concurrency`: throughput and latency with so many requests always in flight.

A closed loop sends a request for each answer, so that a slow server is asked less: its latencies
are not those of users who come by themselves, and no SLA is judged by them. It tells what a server
can carry at all, and compares with tools that measure that way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from perseus.measurement.cell import CellUnderTest, Findings
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.server_under_test import server_under_test
from perseus.measurement.windows import keep
from perseus.peak import stats
from perseus.peak.durations import grace_s, loop_s, settle_s
from perseus.peak.outcome import Outcome
from perseus.peak.verdict import judge
from perseus.peak.window import Window
from perseus.serving.failures import ServerError
from perseus.study.experiments.concurrency import Run
from perseus.study.tasks.measure import MeasureTask


@dataclass(frozen=True)
class Throughput:
    """What one tenant answered with `concurrency` requests of each tenant in flight."""

    concurrency: int
    tenant: str
    answered_rps: float
    low_rps: float
    high_rps: float


def measure(cell: CellUnderTest) -> Findings:
    """Go through the concurrencies."""
    outcome, reason, throughputs = Outcome.OK, "", list[Throughput]()
    with server_under_test(cell) as server:
        try:
            with server.under_load() as system:
                rng = cell.stream(len(cell.task.tenants))
                throughputs = sweep(cell.task, system, rng, partial(keep, cell, system))
        except ServerError as error:
            outcome, reason = Outcome.FAILED, str(error)
    levels = [asdict(each) for each in throughputs]
    return Findings({**server.record, "outcome": outcome, "reason": reason, "levels": levels})


def load_s(task: MeasureTask) -> tuple[float, float]:
    """All windows, which are as long as they may be."""
    seconds = len(_concurrencies(task)) * loop_s(task.search, task.slas)
    return seconds, seconds


def sweep(
    task: MeasureTask,
    system: LiveSystem,
    rng: np.random.Generator,
    on_window: Callable[[Window, float], None],
) -> list[Throughput]:
    """A window per concurrency, in random order, so that a drift of the server is no trend.

    Every tenant has that many requests in flight. The verdicts of a window say whether it is valid,
    and what the SLA would be. `on_window` is called after each with the seconds that are left.
    """
    throughputs: list[Throughput] = []
    order = rng.permutation(np.asarray(_concurrencies(task)))
    for done, concurrency in enumerate(order.tolist(), start=1):
        window, of_tenants = _one_window(task, system, concurrency)
        on_window(window, (len(order) - done) * window.elapsed_s)
        throughputs += of_tenants
    return sorted(throughputs, key=lambda each: each.concurrency)


def _one_window(
    task: MeasureTask, system: LiveSystem, concurrency: int
) -> tuple[Window, list[Throughput]]:
    settle, grace = settle_s(task.search, task.slas), grace_s(task.slas)
    elapsed_s = loop_s(task.search, task.slas)
    with system.offer_closed([concurrency] * len(task.slas), elapsed_s) as load:
        seen = load.until(elapsed_s)
    settled_ns = seen.start_ns + round(settle * 1e9)
    throughputs = []
    for name, requests in zip(task.tenant_names, seen.requests, strict=True):
        rate = answered_rps(requests.done_ns[requests.answered], settled_ns, seen.now_ns)
        throughputs.append(Throughput(concurrency, name, rate.value, rate.low, rate.high))
    tenants = tuple(
        judge(
            seen,
            i,
            sla,
            rate_rps=each.answered_rps,
            settle_s=settle,
            grace_s=grace,
            confidence=task.search.confidence,
        )
        for i, (sla, each) in enumerate(zip(task.slas, throughputs, strict=True))
    )
    window = Window("concurrency", float(concurrency), settle, elapsed_s, tenants, seen)
    return window, throughputs


def answered_rps(done_ns: NDArray[np.int64], start_ns: int, end_ns: int) -> stats.Interval:
    """Answers/s between two times, with a 95 % interval by batch means."""
    edges = np.linspace(start_ns, end_ns, stats.BATCHES + 1)
    counts = np.histogram(done_ns, edges)[0]
    return stats.mean_interval(counts / np.diff(edges) * 1e9)


def _concurrencies(task: MeasureTask) -> Sequence[int]:
    return cast(Run, task.run).concurrencies
