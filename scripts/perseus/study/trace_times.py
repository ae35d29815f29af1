"""Find the column with the times in a trace file, and the unit of these times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from perseus.study.hints import meant_or_known
from perseus.study.trace_files import TraceError, TraceFile, is_date, moment, number

PER_S: Final = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""For each unit of time, the number of units in one second. Perseus divides times by this number.
For whole seconds, the result of the division is exact."""

UNIT_WORDS: Final = {
    "s": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "msec", "millis", "millisecond", "milliseconds"),
    "us": ("us", "usec", "micros", "microsecond", "microseconds"),
    "ns": ("ns", "nsec", "nanos", "nano", "nanosecond", "nanoseconds"),
}
"""For each unit of time, the words at the end of a column name that mean this unit, such as "ms" in
`arrival_ms` and "nano" in `timeUnixNano`."""

TIME_NAMES: Final = (
    *("time", "times", "timestamp", "ts", "date", "datetime", "epoch", "epochtime", "unixtime"),
    *("arrival", "arrivals", "arrivaltime", "arrivaltimestamp", "arrivedat", "starttime"),
    *("starttimestamp", "startedat", "createdat", "timeunix", "starttimeunix"),
)
"""Usual names of columns with times, in lower case, without a unit and without punctuation: the
name for `arrivalTime_ms` is "arrivaltime"."""

EPOCH_S: Final = (1e9, 1e10)
"""Range of times, in seconds, that Perseus reads as times since 1970: from September 2001 to
2286."""

LATEST_S: Final = 1e11
"""Largest valid time, in seconds since 1970 (the year 5138). If a time is larger, its unit is
wrong."""

HOUR_S, DISORDER_S = 3600.0, 60.0
"""At the end of summer time, clocks go back by HOUR_S seconds, so the times in a file step back. If
the times step back by at most DISORDER_S seconds, Perseus assumes that the rows are not exactly
sorted, and not that the clocks went back."""

BETWEEN_AUTUMNS_S: Final = 300 * 24 * HOUR_S

CLOCKS: Final = (
    *("Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York", "Australia/Sydney"),
    *("Pacific/Auckland", "America/Santiago", "America/Havana", "Atlantic/Azores"),
    *("Africa/Cairo", "Asia/Beirut", "Asia/Jerusalem"),
)
"""Time zones in which clocks go back by one hour in autumn. Of several zones in which clocks go
back on the same day at the same hour, the list contains only one."""

REPEATED_HOURS: Final = (0, 1, 2, 3, 23)
"""Hours of the day that clocks show twice in autumn, in at least one zone of CLOCKS."""


@dataclass(frozen=True)
class Understood:
    """How Perseus interpreted the times in a trace file.

    `column` is the name of the column with the times. If the file has only one column, or contains
    counts per minute and not times, `column` is empty. `unit` is "s", "ms", "us", "ns", "dates"
    (dates with times) or "counts per minute". `note` describes how Perseus read times without a
    time zone, and is empty for other times. `doubt` says why the interpretation may be wrong, and
    is empty without a doubt.
    """

    column: str
    unit: str
    note: str = ""
    doubt: str = ""


def words_of(name: str) -> list[str]:
    """Return the words in the name of a column, in lower case: ["arrival", "time", "ms"] for
    `arrivalTime_ms`."""
    return re.findall("[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def unit_of_name(name: str) -> str | None:
    """Return the unit of time in the last word of a column name; None if the last word is no
    unit."""
    last = words_of(name)[-1:]
    return next((unit for unit, words in UNIT_WORDS.items() if last and last[0] in words), None)


def _is_named_as_time(name: str) -> bool:
    words = words_of(name)
    rest = words[:-1] if unit_of_name(name) else words
    return "".join(rest) in TIME_NAMES


def time_column(file: TraceFile, asked: str | None) -> str:
    """Return the name of the column with the times.

    If the configuration names the column (`asked`), return this name, or raise TraceError if the
    file has no such column. Otherwise, return the only column, or the column that Perseus
    recognises by its name, its dates or its numbers. If Perseus recognises no column or several
    columns, raise TraceError with a line that the user can copy into the configuration.
    """
    if asked is not None:
        if asked not in file.columns:
            hint = meant_or_known(asked, file.columns)
            raise TraceError(f"{file.path} has no column {asked!r}{hint}")
        return asked
    if len(file.columns) == 1:
        return file.columns[0]
    named = [name for name in file.columns if _is_named_as_time(name)]
    for candidates in (named, _stamped(file)):
        if len(candidates) == 1:
            return candidates[0]
    raise TraceError(f"{file.described()}. Name the column with the times: {suggested(file)}")


def suggested(file: TraceFile) -> str:
    """Return a line that the user can copy into the configuration to name the column with the
    times. The function guesses the column from the first row of the file."""
    stamped = _stamped(file)
    pairs = zip(file.columns, file.first, strict=False)
    numbered = [name for name, text in pairs if number(text) == number(text)]
    name = next(iter([*stamped, *numbered, *file.columns]))
    unit = "" if stamped else ", unit: ms"
    return f"{{file: {file.path.name}, column: {name!r}{unit}}}"


def _stamped(file: TraceFile) -> list[str]:
    """Return the columns that probably contain times: their first value is a date, or a number that
    can be a time since 1970."""
    return [
        name
        for name, text in zip(file.columns, file.first, strict=False)
        if is_date(text) or _unit_since_1970(number(text), number(text))
    ]


def _unit_since_1970(first: float, last: float) -> str | None:
    """Return the unit in which `first` and `last`, as times since 1970, lie between 2001 and 2286;
    None if there is no such unit."""
    units = (
        unit
        for unit, per_s in PER_S.items()
        if EPOCH_S[0] <= first / per_s <= last / per_s < EPOCH_S[1]
    )
    return next(units, None)


def seconds(
    file: TraceFile, column: str, values: Any, stated: str | None, of_format: str | None
) -> tuple[NDArray[np.float64], Understood]:
    """Convert the times of a column into seconds.

    Return the seconds in the order of the rows, and how Perseus interpreted the column. `values` is
    the content of the column, a pyarrow ChunkedArray. `stated` is the unit in the configuration, or
    None. `of_format` is the usual unit of the file format, or None if unknown. Raises TraceError if
    a row contains no valid time.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    name = column if len(file.columns) > 1 else ""
    are_dates = pa.types.is_timestamp(values.type)
    if are_dates or pa.types.is_duration(values.type):
        times_s = pc.cast(values, pa.int64()).to_numpy() / PER_S[values.type.unit]
        understood = Understood(name, "dates" if are_dates else values.type.unit)
        return _checked(file, times_s, values, understood, are_dates and values.type.tz is None)
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        numbers = values.to_numpy().astype(float)
    elif pa.types.is_nested(values.type):
        raise TraceError(
            f"{file.described()}. Column {column!r} has lists or mappings in place of times"
        )
    else:
        texts = [(text or "").strip() for text in pc.cast(values, pa.string()).to_pylist()]
        numbers = np.array([number(text) for text in texts])
        if not np.isfinite(numbers).any():
            moments = [moment(text) for text in texts]
            times_s = np.array([each for each, _ in moments])
            are_local = not any(has_zone for _, has_zone in moments)
            return _checked(file, times_s, values, Understood(name, "dates"), are_local)
    told = stated or _unit_of_numbers(numbers) or unit_of_name(column) or of_format
    understood = Understood(name, told) if told else _assumed(file, name, numbers)
    return _checked(file, numbers / PER_S[understood.unit], values, understood, False)


def _unit_of_numbers(numbers: NDArray[np.float64]) -> str | None:
    """Return the unit in which all numbers are plausible times since 1970; None without such a
    unit.

    The caller prefers this unit to a unit in the name of the column, because such large numbers
    cannot be times since the start of a trace.
    """
    finite = numbers[np.isfinite(numbers)]
    return _unit_since_1970(finite.min(), finite.max()) if len(finite) else None


def _assumed(file: TraceFile, name: str, numbers: NDArray[np.float64]) -> Understood:
    """Interpret numbers with an unknown unit as seconds. If the median gap between these times is
    more than 1 s, the result states a `doubt` about the unit."""
    ascending = np.sort(numbers[np.isfinite(numbers)])
    if len(ascending) < 2 or np.median(np.diff(ascending)) <= 1:
        return Understood(name, "s")
    span = float(np.ptp(ascending))
    lasts = ", ".join(f"{duration_text(span / PER_S[unit])} in {unit}" for unit in PER_S)
    of = f", column: {name!r}" if name else ""
    doubt = (
        f"{file.path} does not state the unit of its times. Depending on the unit, the recording"
        f" lasts {lasts} (state the unit: {{file: {file.path.name}{of}, unit: ms}})"
    )
    return Understood(name, "s", doubt=doubt)


def _checked(
    file: TraceFile,
    times_s: NDArray[np.float64],
    values: Any,
    understood: Understood,
    are_local: bool,
) -> tuple[NDArray[np.float64], Understood]:
    """Return the times, and how Perseus interpreted the times.

    If `are_local` is true, the times have no time zone, and the function corrects them for the end
    of summer time. Raises TraceError if a row contains no valid time.
    """

    def row(i: int) -> str:
        return f"row {file.first_row + i}: {str(values[i])[:40]!r}"

    what = "is not a time: use numbers, or dates with times (ISO 8601), in all rows"
    bad = np.flatnonzero(~np.isfinite(times_s)).tolist()
    if bad and len(bad) == len(times_s):
        raise TraceError(f"{file.described()}. {row(0)} {what}")
    file.refuse([f"{row(i)} {what}" for i in bad])
    late = np.flatnonzero(np.abs(times_s) > LATEST_S).tolist()
    file.refuse([f"{row(i)} is too large for a time in {understood.unit}" for i in late])
    if len(times_s) == 0 or times_s.min() == times_s.max():
        raise TraceError(f"{file.path} needs arrivals at two or more different times")
    return _local(file.path, times_s, understood) if are_local else (times_s, understood)


def _local(
    path: Path, times_s: NDArray[np.float64], understood: Understood
) -> tuple[NDArray[np.float64], Understood]:
    """Correct times without a time zone for the end of summer time.

    When clocks go back, the times in the file step back by up to one hour. The function then adds
    one hour to all later times. If the times also step back elsewhere, by more than DISORDER_S
    seconds, the order of the rows is unclear. The function then corrects no time, and the result
    may state a `doubt`.
    """
    back = np.flatnonzero(np.diff(times_s) < -DISORDER_S) + 1
    is_repeated = np.isin(times_s[back] // HOUR_S % 24, REPEATED_HOURS)
    is_clock = (times_s[back] - times_s[back - 1] >= -HOUR_S) & is_repeated
    most = 1 + np.ptp(times_s) / BETWEEN_AUTUMNS_S
    if not len(back) or not is_clock.all() or len(back) > most:
        note = "without a time zone: the hour that clocks show twice in autumn is read as one hour"
        doubt = _doubled_hour(path, times_s)
        return times_s, Understood(understood.column, "dates", note, doubt)
    put_back = np.zeros(len(times_s))
    put_back[back] = HOUR_S
    note = "without a time zone: the hour that clocks show twice in autumn is read as two hours"
    return times_s + np.cumsum(put_back), Understood(understood.column, "dates", note)


def _doubled_hour(path: Path, times_s: NDArray[np.float64]) -> str:
    """Return a message if the file probably shows the requests of two hours as one hour.

    At the end of summer time, clocks show one hour twice. Times without a time zone do not
    distinguish these two hours. The function looks for such an hour with significantly more
    requests than its neighbours: more than 1.5 times the mean of the hours before and after. If
    there is no such hour, the result is empty.
    """
    first_hour = int(times_s.min() // HOUR_S)
    requests = np.bincount((times_s // HOUR_S).astype(int) - first_hour).astype(float)
    if len(requests) == 1:
        return ""
    padded = np.pad(requests, 1, constant_values=np.nan)
    around = np.nanmean([padded[:-2], padded[2:]], axis=0)
    is_high = (requests > 1.5 * around) & (requests - around > 3 * np.sqrt(requests + around))
    is_at_night = np.isin((first_hour + np.arange(len(requests))) % 24, REPEATED_HOURS)
    for i in np.flatnonzero(is_high & is_at_night).tolist():
        begin = datetime.fromtimestamp((first_hour + i) * HOUR_S, UTC)
        if zone := next((zone for zone in CLOCKS if _is_shown_twice(begin, zone)), None):
            end = begin + timedelta(hours=1)
            return (
                f"{path} has {requests[i]:,.0f} requests from {begin:%Y-%m-%d %H:%M} to"
                f" {end:%H:%M}, but a mean of {around[i]:,.0f} in the hours before and after."
                f" Clocks show this hour twice ({zone}), and the file does not state which of the"
                " two hours its times mean. Write times with their offset, such as"
                f" {begin:%Y-%m-%dT%H:%M:%S}+01:00, or Z for UTC"
            )
    return ""


def _is_shown_twice(hour: datetime, zone: str) -> bool:
    """Return whether clocks in the time zone show `hour` (in local time) twice."""
    first, second = (hour.replace(tzinfo=ZoneInfo(zone), fold=fold) for fold in (0, 1))
    return first.timestamp() < second.timestamp()


def duration_text(span_s: float) -> str:
    """Return a duration as text. The unit is the largest unit in which the duration is at least 2:
    "2.5 min" for 150 s, and "90 s" for 90 s."""
    for size_s, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if span_s >= 2 * size_s:
            return f"{span_s / size_s:.3g} {unit}"
    return f"{span_s:.3g} s"


def rows_that_are(
    file: TraceFile, table: Any, where: Sequence[tuple[str, str]]
) -> NDArray[np.bool_]:
    """Return a mask that is true for the rows that `where` selects. `where` is a list of pairs
    (column, value), and a row must have all these values. Raises TraceError if no row has them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    are = np.ones(table.num_rows, bool)
    for name, value in where:
        if pa.types.is_nested(table[name].type):
            raise TraceError(
                f"{file.path}: `where` cannot select rows by column {name!r}, which has lists or"
                " mappings"
            )
        texts = pc.utf8_trim_whitespace(pc.cast(table[name], pa.string()))
        mine = pc.fill_null(pc.equal(texts, value), False).to_numpy()
        if not mine.any():
            known = [text for text in pc.unique(texts).to_pylist() if text][:20]
            hint = meant_or_known(value, known)
            raise TraceError(f"{file.path} has no row whose {name!r} is {value!r}{hint}")
        are &= mine
    if where and not are.any():
        pairs = " and ".join(f"{name!r} is {value!r}" for name, value in where)
        raise TraceError(f"{file.path} has no row whose {pairs}")
    return are
