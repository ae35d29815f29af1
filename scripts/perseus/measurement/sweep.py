"""The closed-loop sweep of a cell: throughput and latency with so many requests always in flight.

A closed loop sends a request for each answer, so that a slow server is asked less: its latencies
are not those of users who come by themselves, and no SLA is judged by them. It tells what a server
can carry at all, and compares with tools that measure that way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perseus.measurement.live_system import LiveSystem
from perseus.peak import stats
from perseus.peak.durations import loop_s, settle_s
from perseus.peak.verdict import grace_s, judge
from perseus.peak.window import Phase, Window
from perseus.study.presets import Settings
from perseus.study.sla import Sla


@dataclass(frozen=True)
class Level:
    """What one tenant answered with `concurrency` requests of each tenant in flight."""

    concurrency: int
    tenant: str
    answered_rps: float
    low_rps: float
    high_rps: float


def sweep(
    system: LiveSystem,
    concurrencies: Sequence[int],
    names: Sequence[str],
    slas: Sequence[Sla],
    settings: Settings,
    rng: np.random.Generator,
    on_window: Callable[[Window, float], None],
) -> list[Level]:
    """A window per level, in random order, so that a drift of the server is no trend of theirs.

    Every tenant has that many requests in flight; one entry per tenant in `names` and `slas`. The
    verdicts of a window say whether it is valid, and what the SLA would be. `on_window` is called
    after each with the seconds that are left.
    """
    settle, grace = settle_s(settings, slas), grace_s(slas)
    elapsed_s = loop_s(settings, slas)
    found: list[Level] = []
    order = rng.permutation(np.asarray(concurrencies))
    for done, concurrency in enumerate(order.tolist(), start=1):
        with system.offer_closed(concurrency, elapsed_s) as load:
            seen = load.until(elapsed_s)
        levels = []
        for name, requests in zip(names, seen.requests, strict=True):
            done_ns = requests.done_ns[requests.answered]
            ends = (seen.start_ns + round(settle * 1e9), seen.now_ns)
            rate = answered_rps(done_ns, *ends)
            levels.append(Level(concurrency, name, rate.value, rate.low, rate.high))
        tenants = tuple(
            judge(
                seen,
                i,
                sla,
                rate_rps=level.answered_rps,
                settle_s=settle,
                grace_s=grace,
                confidence=settings.confidence,
            )
            for i, (sla, level) in enumerate(zip(slas, levels, strict=True))
        )
        window = Window(Phase.CONCURRENCY, float(concurrency), settle, elapsed_s, tenants, seen)
        on_window(window, (len(order) - done) * elapsed_s)
        found += levels
    return sorted(found, key=lambda level: level.concurrency)


def answered_rps(done_ns: NDArray[np.int64], start_ns: int, end_ns: int) -> stats.Interval:
    """Answers/s between two times, with a 95 % interval by batch means."""
    edges = np.linspace(start_ns, end_ns, stats.BATCHES + 1)
    counts = np.histogram(done_ns, edges)[0]
    return stats.mean_interval(counts / np.diff(edges) * 1e9)
