"""Files that a configuration names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from perseus.study.problems import Place, Problems
from perseus.study.traces import read_times_s

MOST_INTERVALS: Final = 10_000_000
"""That the rates of a trace are taken over: nineteen years of minutes."""


def brace_problems(at: Place, path: str) -> Problems:
    """A path that Snakemake would misread."""
    if "{" in path or "}" in path:
        yield at, f"{path!r} has a brace, which Snakemake takes for a wildcard (rename it)"


def found(test: Callable[[], bool]) -> bool:
    """What a test of a path says, and False where it raises: no file can have that name, or none
    may be looked for there."""
    try:
        return test()
    except OSError:
        return False


def trace_problems(
    at: Place, trace: str, folder: Path, *, interval_s: float | None = None
) -> Problems:
    """Of a file of arrivals, whose path starts from `folder`, and which is cut into intervals of
    `interval_s`, if at all."""
    yield from brace_problems(at, trace)
    try:
        times_s = read_times_s(folder / trace)
    except FileNotFoundError:
        yield at, f"there is no file {trace!r} (one arrival time per line, in seconds or as a date)"
    except (OSError, ValueError) as error:
        yield at, str(error)
    else:
        intervals = np.ptp(times_s) / interval_s if interval_s else 0
        if intervals > MOST_INTERVALS:
            yield (
                at,
                f"{trace!r} lasts {np.ptp(times_s) / 86_400:,.0f} days, more than"
                f" {MOST_INTERVALS:,} times interval_s: (are its times in seconds?)",
            )
