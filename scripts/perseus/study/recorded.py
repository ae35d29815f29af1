"""Recorded arrivals with their real times: files of time stamps, and formats of public traces."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perseus.study.hints import meant_or_known
from perseus.study.traces import (
    TraceError,
    read_column_s,
    read_columns,
    read_times_s,
    refuse,
    text_of,
    to_numbers,
    to_times_s,
)

MINUTE_S: Final = 60.0
AZURE_FUNCTIONS: Final = ["HashOwner", "HashApp", "HashFunction", "Trigger"]
"""The columns before those of the minutes, 1, 2, … (AzureFunctionsDataset2019.md of
github.com/Azure/AzurePublicDataset)."""

AZURE_INVOCATIONS: Final = ["app", "func", "end_timestamp", "duration"]
"""Of an invocation per line, in seconds (AzureFunctionsInvocationTrace2021.md, ibid.)."""

COUNTS: Final = re.compile("[0-9,]+")
MOST_COUNT: Final = 10**9
"""Of invocations in a minute: what is more overflows a sum."""
NOTHING: Final = np.empty(0, np.int64)

BURSTGPT: Final = ["Timestamp", "Model"]
"""The columns that count here, of github.com/HPMLL/BurstGPT; times are whole seconds."""


@dataclass(frozen=True)
class Recorded:
    """Arrivals as a file tells of them.

    `counts` came in intervals of `interval_s` that begin at `starts_s`, ascending, both of shape
    (n,); an interval of 0 s is the time itself. All lie in [0, length_s).
    """

    starts_s: NDArray[np.float64]
    counts: NDArray[np.int64]
    interval_s: float
    length_s: float

    def expected(self, begin_s: float, end_s: float) -> NDArray[np.float64]:
        """How many of each interval's arrivals lie in [begin_s, end_s) on average, shape (n,)."""
        if self.interval_s == 0:
            inside = ((self.starts_s >= begin_s) & (self.starts_s < end_s)).astype(float)
        else:
            ends_s = np.minimum(self.starts_s + self.interval_s, end_s)
            overlap_s = ends_s - np.maximum(self.starts_s, begin_s)
            inside = np.clip(overlap_s / self.interval_s, 0, 1)
        return np.asarray(self.counts * inside)


Reader = Callable[[Path, str | None], Recorded]
"""Reads a file; the text is the column of the times, or whose rows count."""


def of_times(times_s: NDArray[np.float64]) -> Recorded:
    """Of these times, ascending: from the first of them to a mean gap after the last."""
    times_s = times_s - times_s[0]
    length_s = float(times_s[-1]) * len(times_s) / (len(times_s) - 1)
    return Recorded(times_s, np.ones(len(times_s), np.int64), 0.0, length_s)


def _times(path: Path, column: str | None) -> Recorded:
    """A time per line or, with a column's name, in that column of a CSV."""
    return of_times(read_times_s(path) if column is None else read_column_s(path, column))


def _azure_functions(path: Path, function: str | None) -> Recorded:
    """Invocations of a function by its hash, or of all together: the trace of 2019 or of 2021."""
    with text_of(path) as file:
        head = file.readline().strip().split(",")
    read = _invocations if head == AZURE_INVOCATIONS else _invocations_per_minute
    return read(path, function)


def _invocations(path: Path, function: str | None) -> Recorded:
    """By when they began; times count from the first of them all."""
    numbers, (functions, ends, durations) = read_columns(path, AZURE_INVOCATIONS[1:])
    begins_s = to_times_s(path, numbers, ends) - to_numbers(path, numbers, durations)
    every = of_times(np.sort(begins_s))
    mine_s = np.sort(begins_s[np.array([function in (None, each) for each in functions])])
    if not len(mine_s):
        raise TraceError(f"{path} has no function {function!r}")
    return replace(every, starts_s=mine_s - begins_s.min(), counts=np.ones(len(mine_s), np.int64))


def _invocations_per_minute(path: Path, function: str | None) -> Recorded:
    found, bad = 0, list[str]()
    with text_of(path) as file:
        head = file.readline().strip().split(",")
        minutes = len(head) - len(AZURE_FUNCTIONS)
        if minutes < 1 or head != [*AZURE_FUNCTIONS, *map(str, range(1, minutes + 1))]:
            names = ",".join(AZURE_FUNCTIONS)
            each = ",".join(AZURE_INVOCATIONS)
            raise TraceError(
                f"{path} line 1: the columns are not {names},1,2,3 and so on, nor {each}"
            )
        counts = np.zeros(minutes, np.int64)
        for number, line in enumerate(map(str.strip, file), start=2):
            # A day has 46,000 functions: the minutes of others are not looked at.
            if not line or (function is not None and line.split(",", 3)[2:3] != [function]):
                continue
            found += 1
            text = line.split(",", len(AZURE_FUNCTIONS))[-1]
            mine = np.fromstring(text, np.int64, sep=",") if COUNTS.fullmatch(text) else NOTHING
            if len(mine) == minutes and mine.max() <= MOST_COUNT:
                counts += mine
            else:
                bad.append(f"line {number}: {_amiss(line, minutes)}")
    refuse(path, bad)
    if not found:
        raise TraceError(f"{path} has no function" + (f" {function!r}" if function else ""))
    return Recorded(np.arange(minutes) * MINUTE_S, counts, MINUTE_S, minutes * MINUTE_S)


def _amiss(line: str, minutes: int) -> str:
    """What is wrong with the row of a function."""
    texts = line.split(",")[len(AZURE_FUNCTIONS) :]
    wrong = ((i, text) for i, text in enumerate(texts, start=1) if not _is_count(text))
    for minute, text in wrong if len(texts) == minutes else ():
        return f"{text[:40]!r} in minute {minute} is no count"
    columns = line.count(",") + 1
    return f"has {columns} columns, not {len(AZURE_FUNCTIONS) + minutes}"


def _is_count(text: str) -> bool:
    return text.isdecimal() and int(text) <= MOST_COUNT


def _burstgpt(path: Path, llm: str | None) -> Recorded:
    """Requests to one of the language models, or to all; times count from the first of them all."""
    numbers, (stamps, models) = read_columns(path, BURSTGPT)
    times_s = to_times_s(path, numbers, stamps)
    known = list(dict.fromkeys(models))
    if llm not in (None, *known):
        raise TraceError(f"{path} has no request to {llm!r}{meant_or_known(str(llm), known)}")
    mine_s = np.sort(times_s[np.array([llm in (None, model) for model in models])])
    # Within its second, a request may have come at any time.
    length_s = float(np.ptp(times_s)) + 1.0
    return Recorded(mine_s - times_s.min(), np.ones(len(mine_s), np.int64), 1.0, length_s)


FORMATS: Final[dict[str, Reader]] = {
    "times": _times,
    "azure_functions": _azure_functions,
    "burstgpt": _burstgpt,
}


def read_recorded(path: Path, form: str, selected: str | None = None) -> Recorded:
    """The arrivals of a file in one of FORMATS; `selected` is the column or row that counts.

    Raises OSError, and TraceError for a file that is not of that format, with the numbers of lines.
    """
    return FORMATS[form](path, selected)
