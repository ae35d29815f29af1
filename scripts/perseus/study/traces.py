"""A trace of arrivals: a text file with one time in seconds per line."""

from __future__ import annotations

from pathlib import Path

import numpy as np


class TraceError(ValueError):
    """A file is no trace of arrivals; the message says where."""


def read_gaps_s(path: Path) -> tuple[float, ...]:
    """The gaps in seconds between the arrivals of a trace, whose times need not be sorted.

    The first line may be the header `time_s`; empty lines do not count. Raises OSError, and
    TraceError for a line that is no time and when no time passes between the arrivals.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise TraceError(f"{path} is not a text file: {error}") from None
    times_s = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or (number == 1 and text == "time_s"):
            continue
        try:
            times_s.append(float(text))
        except ValueError:
            raise TraceError(f"{path} line {number}: {text[:40]!r} is not a time in s") from None
        if not np.isfinite(times_s[-1]):
            raise TraceError(f"{path} line {number}: {text!r} is not a time in s")
    if len(set(times_s)) < 2:
        raise TraceError(f"{path} needs arrivals at two different times, at least")
    return tuple(np.diff(np.sort(times_s)).tolist())
