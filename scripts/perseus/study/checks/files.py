"""Checks of files that a configuration names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from perseus.study.problems import Place, Problems
from perseus.study.recorded import read_named
from perseus.study.trace_files import TraceError
from perseus.study.traces import TraceSource

MAX_INTERVALS: Final = 10_000_000
"""Largest number of intervals for the rates of a trace: nineteen years of minutes."""


def brace_problems(at: Place, path: str) -> Problems:
    """Yield a problem if Snakemake would misread the path."""
    if "{" in path or "}" in path:
        yield at, f"{path!r} has a brace, which Snakemake takes for a wildcard (rename it)"


def found(test: Callable[[], bool]) -> bool:
    """Return the result of a test of a path.

    False if the test raises, since no such file can exist or be accessed.
    """
    try:
        return test()
    except OSError:
        return False


def trace_problems(
    at: Place, source: TraceSource, folder: Path, *, interval_s: float | None = None
) -> Problems:
    """Yield problems of a file of arrivals.

    With `interval_s`, the unit of its times matters; otherwise only the ratios of its gaps do.
    """
    yield from brace_problems(at, source.file)
    try:
        recorded = read_named(folder, source, needs_unit=interval_s is not None).recorded
    except TraceError as error:
        yield at, str(error)
        return
    if not recorded.counts.any() or (interval_s is None and recorded.is_of_one_time):
        wanted = "arrivals" if interval_s else "at least two arrivals at different times"
        yield at, f"{source} needs {wanted}"
    if interval_s and recorded.length_s > MAX_INTERVALS * interval_s:
        yield (
            at,
            f"{source.file!r} lasts {recorded.length_s / 86_400:,.0f} days, more than"
            f" {MAX_INTERVALS:,} times interval_s: (check the unit of its times)",
        )
