"""Run an open-loop window: each tenant gets requests at a fixed mean rate, at times that the
arrival process of the study draws."""

from __future__ import annotations

from collections.abc import Sequence

from perseus.peak.durations import grace_s, settle_s
from perseus.peak.system import System
from perseus.peak.verdict import Tolerance, judge_each
from perseus.peak.window import Window
from perseus.study.tasks.measure import MeasureTask


def open_loop_s(task: MeasureTask, counted_s: float) -> float:
    """Return the length in seconds of a window in which requests count for `counted_s` seconds.

    The length also includes the settling time, and the grace time at the end of the window.
    """
    return settle_s(task.search, task.slas) + counted_s + grace_s(task.slas)


def open_loop(
    task: MeasureTask,
    system: System,
    phase: str,
    rates_rps: Sequence[float],
    elapsed_s: float,
    tolerance: Tolerance,
) -> Window:
    """Run a window with one fixed rate per tenant, and judge for each tenant whether the server
    keeps its SLA."""
    with system.offer(rates_rps, elapsed_s) as load:
        seen = load.until(elapsed_s)
    settle, grace = settle_s(task.search, task.slas), grace_s(task.slas)
    tenants = judge_each(
        seen,
        task.slas,
        rates_rps,
        settle_s=settle,
        grace_s=grace,
        confidence=task.search.confidence,
        tolerance=tolerance,
    )
    return Window(phase, float("nan"), settle, elapsed_s, tenants, seen)
