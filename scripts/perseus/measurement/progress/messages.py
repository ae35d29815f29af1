"""Describe the progress of a cell in messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from perseus.peak.durations import expected_s, longest_s
from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import Outcome, Peak
from perseus.peak.window import Window
from perseus.study.tasks.measure import MeasureTask


def describe_mix(task: MeasureTask, weights: Sequence[int]) -> str:
    """Return a message with the weight of each tenant in a mix."""
    pairs = zip(task.tenant_names, weights, strict=False)
    ratio = ", ".join(f"{name} {weight}" for name, weight in pairs)
    return f"mix (ratio of the rates, each in units of its dedicated peak): {ratio}"


def describe_search(
    task: MeasureTask, weights: Sequence[int], rates_rps: Sequence[float], warning: str
) -> Iterator[str]:
    """Yield messages with the mix and the duration of a search.

    `warning` states why the search may end without a certified rate. If `warning` is not empty, the
    last message contains it.
    """
    if weights:
        yield describe_mix(task, weights)
    sizes = task.search, task.slas, rates_rps
    about_min, most_min = expected_s(*sizes) / 60, longest_s(*sizes) / 60
    yield f"the search offers load for about {about_min:.1f} min, at most {most_min:.0f} min"
    if warning:
        yield f"the search may end without a certified rate ({warning})"


def describe_window(window: Window, names: Sequence[str], seconds_left: float) -> str:
    """Return a message with the rates, p95 and verdict of a window, and the remaining time."""
    tenants = ", ".join(
        f"{name} {seen.offered_rps:.1f}/s p95 {seen.p95_ms:.0f} ms"
        for name, seen in zip(names, window.tenants, strict=True)
        if seen.offered_rps > 0
    )
    why = f" ({window.invalid_tenants[0].reason})" if window.invalid_tenants else ""
    return f"{window.phase:8} {tenants}: {window.verdict}{why}, about {seconds_left:.0f} s left"


def describe_peak(peak: Peak, line: LoadLine, names: Sequence[str]) -> str:
    """Return a message of one line with the result of a search or a prediction."""
    if np.isnan(peak.certified):
        return f"{peak.outcome}: {peak.reason}"
    rates = zip(names, line.rates_rps(peak.certified), line.rates_rps(peak.estimate), strict=True)
    found = ", ".join(f"{name} {low:.1f}/s (estimate {best:.1f})" for name, low, best in rates)
    suffix = "" if peak.outcome is Outcome.OK else f" ({peak.outcome}: {peak.reason})"
    return f"certified rates: {found}{suffix}"
