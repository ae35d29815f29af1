"""Read recorded arrival times from trace files of several formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perseus.study.hints import meant_or_known
from perseus.study.trace_files import TraceError, TraceFile, number, open_trace
from perseus.study.trace_times import Understood, duration_text, rows_that_are, seconds, time_column
from perseus.study.traces import TraceSource

MINUTE_S: Final = 60.0
AZURE_FUNCTIONS: Final = ("HashOwner", "HashApp", "HashFunction", "Trigger")
"""First columns of an Azure Functions trace of 2019. In such a trace, each column after them
(called 1, 2, …) contains the number of invocations in one minute (AzureFunctionsDataset2019.md of
github.com/Azure/AzurePublicDataset)."""

MAX_COUNT: Final = 10**9
"""Largest number of invocations in one minute that Perseus accepts: the sum of larger numbers could
overflow."""


class Format(NamedTuple):
    """A public format of traces. A file has this format if it has all `columns`.

    `column` is the name of the column with the times, and `unit` is the unit of the times. If the
    column contains the end times of the requests, `took_s` is the name of the column with the
    durations of the requests in seconds. Otherwise, `took_s` is None.
    """

    name: str
    columns: frozenset[str]
    column: str
    unit: str
    took_s: str | None = None


FORMATS: Final = (
    # AzureFunctionsInvocationTrace2021.md of github.com/Azure/AzurePublicDataset
    Format(
        "an Azure Functions trace of 2021",
        frozenset({"app", "func", "end_timestamp", "duration"}),
        "end_timestamp",
        "s",
        took_s="duration",
    ),
    # github.com/HPMLL/BurstGPT
    Format(
        "a BurstGPT trace", frozenset({"Timestamp", "Model", "Request tokens"}), "Timestamp", "s"
    ),
    # github.com/alibaba-edu/qwen-bailian-usagetraces-anon
    Format("a Bailian trace", frozenset({"chat_id", "timestamp"}), "timestamp", "s"),
    # github.com/kvcache-ai/Mooncake, and AIPerf (github.com/ai-dynamo/aiperf)
    *(
        Format("a Mooncake trace", frozenset({"timestamp", key}), "timestamp", "ms")
        for key in ("input_length", "output_length", "hash_ids", "text_input", "session_id")
    ),
)
"""Known formats. If a file has the columns of several formats, Perseus uses the format that comes
first in the list."""


@dataclass(frozen=True)
class Recorded:
    """The recorded arrivals in a trace file.

    If `interval_s` is 0, `counts[i]` requests arrived at the time `starts_s[i]`. Otherwise, the
    file states no exact times: `counts[i]` requests arrived in the `interval_s` seconds after
    `starts_s[i]`. `counts` and `starts_s` have the shape (n,), and `starts_s` is ascending. All
    times are in seconds and lie in [0, length_s).
    """

    starts_s: NDArray[np.float64]
    counts: NDArray[np.int64]
    interval_s: float
    length_s: float

    @property
    def is_of_one_time(self) -> bool:
        """True if all arrivals are at the same time or in the same interval. There are then no gaps
        to replay."""
        return len(np.unique(self.starts_s[self.counts > 0])) < 2

    def expected(self, begin_s: float, end_s: float) -> NDArray[np.float64]:
        """Return the expected number of arrivals between `begin_s` and `end_s` for each time or
        interval of the file, shape (n,)."""
        if self.interval_s == 0:
            inside = ((self.starts_s >= begin_s) & (self.starts_s < end_s)).astype(float)
        else:
            ends_s = np.minimum(self.starts_s + self.interval_s, end_s)
            overlap_s = ends_s - np.maximum(self.starts_s, begin_s)
            inside = np.clip(overlap_s / self.interval_s, 0, 1)
        return np.asarray(self.counts * inside)

    def times_s(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the times of all arrivals in seconds, in ascending order. If the file states only
        intervals, each arrival gets a random time within its interval."""
        starts_s = np.repeat(self.starts_s, self.counts)
        return np.sort(starts_s + self.interval_s * rng.random(len(starts_s)))

    def gaps_s(self) -> tuple[float, ...]:
        """Return the gaps between the arrivals in seconds. Each call returns the same gaps, because
        the random times within intervals have a constant seed."""
        return tuple(np.diff(self.times_s(np.random.default_rng(0))).tolist())


@dataclass(frozen=True)
class Trace:
    """The recorded arrivals of a trace file, and how Perseus interpreted the file."""

    recorded: Recorded
    understood: Understood
    format: str

    def message(self, name: str) -> str:
        """Return one line of text that tells the user how Perseus read the file: format, number of
        requests, duration, and column and unit of the times."""
        count, length_s = int(self.recorded.counts.sum()), self.recorded.length_s
        unit, column = self.understood.unit, self.understood.column
        of = f" of column {column!r}" if column else ""
        interval_s = self.recorded.interval_s
        within = f"random times within intervals of {interval_s:g} s" if interval_s else ""
        notes = ", ".join(filter(None, (self.understood.note, within)))
        return (
            f"{name} was read as {self.format}: {count:,} requests in {duration_text(length_s)},"
            f" {count / length_s:.3g}/s; times{of} in {unit}{f' ({notes})' if notes else ''}"
        )


def of_times(times_s: NDArray[np.float64]) -> Recorded:
    """Return the recorded arrivals with the ascending times `times_s` in seconds.

    The duration of the recording is the time from the first to the last arrival, plus one mean gap.

    If all times are whole seconds and several arrivals have the same time, the function assumes
    that the times are rounded. Each arrival then has an interval of one second, and the recording
    ends at the end of the last interval.
    """
    is_rounded = not np.any(times_s % 1) and np.any(np.diff(times_s) == 0)
    times_s = times_s - times_s[0]
    last_s = float(times_s[-1])
    length_s = last_s + 1.0 if is_rounded else last_s * len(times_s) / (len(times_s) - 1)
    ones = np.ones(len(times_s), np.int64)
    return Recorded(times_s, ones, 1.0 if is_rounded else 0.0, length_s)


def read_trace(path: Path, source: TraceSource) -> Trace:
    """Read the arrivals that `source` selects from the trace file `path`.

    The rows of the file may have any order. The time 0 is the first request of the file, even if
    `source` does not select this request. Raises OSError if the file cannot be opened, and
    TraceError if Perseus finds no valid times in the file.
    """
    file = open_trace(path)
    where = [(name, str(value)) for name, value in source.where.items()]
    for name, _ in where:
        if name not in file.columns:
            hint = meant_or_known(name, file.columns)
            raise TraceError(f"{path} has no column {name!r}{hint}")
    if source.column is None and file.columns[: len(AZURE_FUNCTIONS)] == AZURE_FUNCTIONS:
        understood = Understood("", "counts per minute")
        return Trace(_of_minutes(file, where), understood, "an Azure Functions trace of 2019")
    known = None if source.column else _format(file)
    column = known.column if known else time_column(file, source.column)
    took_s = [known.took_s] if known and known.took_s else []
    table = file.read(list(dict.fromkeys([column, *took_s, *(name for name, _ in where)])))
    usual = known.unit if known else None
    times_s, understood = seconds(file, column, table[column], source.unit, usual)
    for name in took_s:
        times_s = times_s - _numbers(file, table[name])
    mine = rows_that_are(file, table, where)
    recorded = of_times(np.sort(times_s))
    if where:
        mine_s = np.sort(times_s[mine]) - times_s.min()
        ones = np.ones(len(mine_s), np.int64)
        recorded = Recorded(mine_s, ones, recorded.interval_s, recorded.length_s)
    return Trace(recorded, understood, known.name if known else file.format)


def read_named(folder: Path, source: TraceSource, *, needs_unit: bool) -> Trace:
    """Read the arrivals that `source` selects from a trace file.

    The path of the file is relative to `folder`. Raises TraceError for every problem, also if the
    file cannot be opened. If `needs_unit` is true, an unclear unit of the times is a problem too.
    """
    try:
        trace = read_trace(folder / source.file, source)
    except FileNotFoundError:
        raise TraceError(f"there is no trace file {source.file!r}") from None
    except (OSError, ValueError) as error:
        raise TraceError(str(error)) from None
    if needs_unit and trace.understood.doubt:
        raise TraceError(trace.understood.doubt)
    return trace


def _format(file: TraceFile) -> Format | None:
    return next((each for each in FORMATS if each.columns <= set(file.columns)), None)


def _numbers(file: TraceFile, values: Any) -> NDArray[np.float64]:
    found = np.array([number(str(text)) for text in values.to_pylist()])
    bad = np.flatnonzero(~np.isfinite(found)).tolist()
    file.refuse([f"row {file.first_row + i}: {str(values[i])[:40]!r} is not a number" for i in bad])
    return found


def _of_minutes(file: TraceFile, where: Sequence[tuple[str, str]]) -> Recorded:
    """Return the number of requests in each minute of an Azure Functions trace of 2019.

    The file has one row for each combination of an Azure function and a trigger. The result is the
    sum of the rows that `where` selects.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    minutes = file.columns[len(AZURE_FUNCTIONS) :]
    if not minutes or list(minutes) != [str(i + 1) for i in range(len(minutes))]:
        raise TraceError(f"{file.path} row 1: the columns after Trigger are not 1, 2, 3 and so on")
    table = file.read(file.columns)
    mine = rows_that_are(file, table, where)
    if not table.num_rows:
        raise TraceError(f"{file.path} has no row with invocations of a function")
    table = table.filter(mine)
    rows = file.first_row + np.flatnonzero(mine)
    counts, bad = np.zeros(len(minutes), np.int64), list[str]()
    for i, minute in enumerate(minutes):
        texts = table[minute]
        are_counts = pc.match_substring_regex(texts, "^[0-9]{1,10}$")
        wrong = np.flatnonzero(~are_counts.to_numpy())
        numbers = pc.cast(pc.if_else(are_counts, texts, "0"), pa.int64()).to_numpy()
        for k in [*wrong, *np.flatnonzero(numbers > MAX_COUNT)]:
            bad.append(
                f"row {rows[k]}: {str(texts[int(k)])[:40]!r} in minute {minute} is not a"
                " number of invocations"
            )
        counts[i] = numbers.sum()
    file.refuse(bad)
    starts = MINUTE_S * np.arange(len(minutes), dtype=np.float64)
    return Recorded(starts, counts, MINUTE_S, len(minutes) * MINUTE_S)
