"""A trace of arrivals: a text file with one time per line, in seconds or as a date."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

import numpy as np
from numpy.typing import NDArray

MOST_TOLD: Final = 3
"""Lines of a file that are told of; of the others only how many they are."""


LATEST_S: Final = 1e11
"""As seconds since 1970, in the year 5138: a larger number is of milliseconds, or finer."""


class TraceError(ValueError):
    """A file is no trace of arrivals; the message says where."""


def read_gaps_s(path: Path) -> tuple[float, ...]:
    """The gaps in seconds between the arrivals of a trace, whose times need not be sorted.

    The first line may be the header `time_s`; empty lines do not count. Raises OSError, and
    TraceError for lines that are no times and when no time passes between the arrivals.
    """
    return tuple(np.diff(read_times_s(path)).tolist())


def read_times_s(path: Path) -> NDArray[np.float64]:
    """The times in seconds of a trace, ascending; raises as `read_gaps_s` does."""
    with text_of(path) as file:
        lines = [(number, line.strip()) for number, line in enumerate(file, start=1)]
    stamps = {n: text for n, text in lines if text and not (n == 1 and text == "time_s")}
    return np.sort(to_times_s(path, list(stamps), list(stamps.values())))


def read_column_s(path: Path, column: str) -> NDArray[np.float64]:
    """The times in seconds of a CSV's column, ascending; raises as `read_gaps_s` does."""
    numbers, (stamps,) = read_columns(path, [column])
    return np.sort(to_times_s(path, numbers, stamps))


def to_times_s(path: Path, numbers: Sequence[int], texts: Sequence[str]) -> NDArray[np.float64]:
    """Seconds of what stands in lines with these numbers, all in seconds or all dates with times
    (ISO 8601); raises as `read_gaps_s` does."""
    times_s = np.array([_number(text) for text in texts])
    if not np.isfinite(times_s).any():
        times_s = np.array([_moment_s(text) for text in texts])
    bad = np.flatnonzero(~np.isfinite(times_s)).tolist()
    what = "is not a time in s, nor are all of them dates with times (ISO 8601)"
    refuse(path, [f"line {numbers[i]}: {texts[i][:40]!r} {what}" for i in bad])
    late = np.flatnonzero(np.abs(times_s) > LATEST_S).tolist()
    what = "is too large for a time in s (divide milliseconds by 1000)"
    refuse(path, [f"line {numbers[i]}: {texts[i][:40]!r} {what}" for i in late])
    if len(times_s) == 0 or times_s.min() == times_s.max():
        raise TraceError(f"{path} needs arrivals at two different times, at least")
    return times_s


def to_numbers(path: Path, numbers: Sequence[int], texts: Sequence[str]) -> NDArray[np.float64]:
    """Raises TraceError for lines, with these numbers, in which no finite number stands."""
    found = np.array([_number(text) for text in texts])
    bad = np.flatnonzero(~np.isfinite(found)).tolist()
    refuse(path, [f"line {numbers[i]}: {texts[i][:40]!r} is no number" for i in bad])
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _moment_s(text: str) -> float:
    """Seconds since 1970; of UTC where the date names no zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return np.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@contextmanager
def text_of(path: Path) -> Iterator[TextIO]:
    """The file, opened to read. Raises OSError, and TraceError for one that is no text."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path} is not a text file: {error}") from None


def read_columns(path: Path, wanted: Sequence[str]) -> tuple[list[int], list[list[str]]]:
    """The numbers of a CSV's lines, and for each of the wanted columns what stands in them.

    Raises OSError, and TraceError where the first line does not name them or lines lack them.
    """
    numbers: list[int] = []
    # No row of a million is kept: the collector of garbage would look at each of them, many times.
    columns: list[list[str]] = [[] for _ in wanted]
    short = []
    with text_of(path) as file:
        reader = csv.reader(file)
        head = [name.strip() for name in next(reader, [])]
        if missing := [name for name in wanted if name not in head]:
            what = f"has no column {' and none '.join(map(repr, missing))}"
            raise TraceError(f"{path} line 1: {', '.join(head)[:60]!r} {what}")
        places = [head.index(name) for name in wanted]
        for row in filter(None, reader):
            if len(row) <= max(places):
                short.append(f"line {reader.line_num}: has {len(row)} of {len(head)} columns")
                continue
            numbers.append(reader.line_num)
            for column, place in zip(columns, places, strict=True):
                column.append(row[place].strip())
    refuse(path, short)
    return numbers, columns


def refuse(path: Path, bad: Sequence[str]) -> None:
    """Raises TraceError if there are bad lines, and names the first of them."""
    if bad:
        more = len(bad) - MOST_TOLD
        rest = f"; and {more} more such line{'s' if more > 1 else ''}" if more > 0 else ""
        raise TraceError(f"{path} {'; '.join(bad[:MOST_TOLD])}{rest}")
