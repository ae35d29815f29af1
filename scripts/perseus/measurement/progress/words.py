"""What a person reads while a cell is measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import Outcome, Peak
from perseus.peak.verdict import Verdict
from perseus.peak.window import Window


def describe_window(window: Window, names: Sequence[str], seconds_left: float) -> str:
    """What was offered, how it went, and how long the rest will take."""
    tenants = ", ".join(
        f"{name} {seen.offered_rps:.1f}/s p95 {seen.p95_ms:.0f} ms"
        for name, seen in zip(names, window.tenants, strict=True)
        if seen.offered_rps > 0
    )
    spoilt = [seen.reason for seen in window.tenants if seen.verdict is Verdict.INVALID]
    verdict = f"{window.verdict} ({spoilt[0]})" if spoilt else str(window.verdict)
    return f"{window.phase:8} {tenants}: {verdict}, about {seconds_left:.0f} s left"


def describe_peak(peak: Peak, line: LoadLine, names: Sequence[str]) -> str:
    """The result of a cell in one line."""
    if np.isnan(peak.certified):
        return f"{peak.outcome}: {peak.reason}"
    rates = zip(names, line.rates_rps(peak.certified), line.rates_rps(peak.estimate), strict=True)
    found = ", ".join(f"{name} {low:.1f}/s (estimate {best:.1f})" for name, low, best in rates)
    suffix = "" if peak.outcome is Outcome.OK else f" ({peak.outcome}: {peak.reason})"
    return f"certified {found}{suffix}"
