"""Check the files that a configuration names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from perseus.study.problems import Place, Problems
from perseus.study.recorded import read_named
from perseus.study.trace_files import TraceError
from perseus.study.traces import TraceSource

MAX_INTERVALS: Final = 10_000_000
"""Largest number of intervals (of `interval_s` seconds) in a trace: 19 years of minutes."""

MAX_REQUESTS: Final = 10_000_000
"""Largest number of requests in a trace whose gaps Perseus scales. Perseus keeps all gaps in
memory."""


def brace_problems(at: Place, path: str) -> Problems:
    """Yield a problem if the path contains a brace, which Snakemake would misread."""
    if "{" in path or "}" in path:
        yield at, f"{path!r} has a brace, which marks a wildcard for Snakemake (rename the file)"


def found(test: Callable[[], bool]) -> bool:
    """Return the result of the test of a path, such as `path.is_file`; False if the test raises
    OSError, for example because the path is too long."""
    try:
        return test()
    except OSError:
        return False


def trace_problems(
    at: Place, source: TraceSource, folder: Path, *, interval_s: float | None = None
) -> Problems:
    """Yield the problems of a file with recorded arrivals.

    If a demand uses the file, `interval_s` is the length of the intervals in which Perseus counts
    arrivals. To count arrivals, Perseus must know the time unit of the file. If `interval_s` is
    None, Perseus scales the gaps between arrivals, so the time unit has no effect.
    """
    yield from brace_problems(at, source.file)
    try:
        recorded = read_named(folder, source, needs_unit=interval_s is not None).recorded
    except TraceError as error:
        yield at, str(error)
        return
    if not recorded.counts.any() or (interval_s is None and recorded.is_of_one_time):
        wanted = "arrivals" if interval_s else "at least two arrivals at different times"
        yield at, f"{source} must have {wanted}"
    if interval_s is None and (count := int(recorded.counts.sum())) > MAX_REQUESTS:
        yield (
            at,
            f"{source} has {count:,} requests, more than {MAX_REQUESTS:,} (select rows with"
            " `where:`, or use a shorter file)",
        )
    if interval_s and recorded.length_s > MAX_INTERVALS * interval_s:
        yield (
            at,
            f"{source.file!r} lasts {recorded.length_s / 86_400:,.0f} days, more than"
            f" {MAX_INTERVALS:,} times `interval_s:` (check the unit of the times)",
        )
