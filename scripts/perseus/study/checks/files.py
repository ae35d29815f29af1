"""Check the files that a configuration names, such as trace files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from perseus.study.problems import Place, Problems
from perseus.study.recorded import read_named
from perseus.study.trace_files import TraceError
from perseus.study.traces import TraceSource

MAX_INTERVALS: Final = 10_000_000
"""Largest number of intervals in a trace. If `interval_s` is one minute, these are 19 years."""

MAX_REQUESTS: Final = 10_000_000
"""Largest number of requests in the trace of an arrival process. Perseus keeps all gaps between
these requests in memory."""


def brace_problems(at: Place, path: str) -> Problems:
    """Yield a problem if the path contains a brace. Snakemake would read it as a wildcard."""
    if "{" in path or "}" in path:
        yield at, f"{path!r} has a brace, which marks a wildcard for Snakemake (rename the file)"


def found(test: Callable[[], bool]) -> bool:
    """Return the result of `test` (a test of a path, such as `path.is_file`); False if the test
    raises OSError, for example because the path is too long."""
    try:
        return test()
    except OSError:
        return False


def trace_problems(
    at: Place, source: TraceSource, folder: Path, *, interval_s: float | None = None
) -> Problems:
    """Yield the problems of a file with recorded arrivals.

    If the file belongs to a demand, `interval_s` is the length of the intervals in which Perseus
    counts arrivals. An unclear time unit is then a problem. If the file belongs to an arrival
    process, `interval_s` is None. The time unit then has no effect, because Perseus scales the gaps
    between the arrivals to the offered rate.
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
