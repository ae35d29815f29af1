"""Files that a configuration names."""

from __future__ import annotations

from pathlib import Path

from perseus.study.problems import Place, Problems
from perseus.study.traces import read_times_s


def brace_problems(at: Place, path: str) -> Problems:
    """A path that Snakemake would misread."""
    if "{" in path or "}" in path:
        yield at, f"{path!r} has a brace, which Snakemake takes for a wildcard (rename it)"


def trace_problems(at: Place, trace: str, folder: Path) -> Problems:
    """Of a file of arrivals, whose path starts from `folder`."""
    yield from brace_problems(at, trace)
    try:
        read_times_s(folder / trace)
    except FileNotFoundError:
        yield at, f"there is no file {trace!r} (one arrival time per line, in seconds or as a date)"
    except (OSError, ValueError) as error:
        yield at, str(error)
