"""Convert ended windows into rows of windows.parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from perseus.measurement.cell import CellUnderTest
from perseus.measurement.live_system import EndedWindow, LiveSystem
from perseus.measurement.progress.messages import describe_window
from perseus.peak.window import Window


def keep(cell: CellUnderTest, system: LiveSystem, window: Window, seconds_left: float) -> None:
    """Add the ended window to the rows of windows.parquet, and report its result as progress."""
    names = cell.task.tenant_names
    cell.raw.windows += as_rows(window, system.ended[-1], names, cell.attempt)
    cell.progressed(system.server, seconds_left, describe_window(window, names, seconds_left))


def as_rows(
    window: Window, ended: EndedWindow, tenants: Sequence[str], attempt: int
) -> list[dict[str, Any]]:
    """Return one row per tenant of an ended window."""
    return [
        {
            "attempt": attempt,
            "window": ended.number,
            "phase": window.phase,
            "scale": window.scale,
            "elapsed_s": window.elapsed_s,
            "settle_s": window.settle_s,
            "start_ns": ended.start_ns,
            "window_verdict": window.verdict,
            "tenant": name,
        }
        | seen.as_dict()
        | asdict(parts)
        | asdict(cpu)
        for name, seen, parts, cpu in zip(
            tenants, window.tenants, ended.decompositions, ended.cpu, strict=True
        )
    ]
