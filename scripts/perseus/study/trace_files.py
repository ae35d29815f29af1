"""Read a trace file as a table with named columns: Parquet, CSV, JSON lines or an access log."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

MAX_LISTED: Final = 3
"""Largest number of invalid rows that a message shows. If there are more, the message states how
many more."""

HEAD_BYTES: Final = 1 << 20
"""Number of bytes that Perseus reads to find the header and the first row of a file."""

PARQUET: Final = b"PAR1"
DELIMITERS: Final = ",;\t"
LOG_COLUMNS: Final = ("host", "user", "time", "method", "path", "status")
LOG_LINE: Final = re.compile(
    r"(\S+) \S+ (\S+) \[(\d\d)/(\w{3})/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})\]"
    r' "((?:[^"\\]|\\.)*)" (\d{3})\b'
)
"""Pattern of a line in the common or the combined log format of web servers
(httpd.apache.org/docs/current/logs.html)."""

MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class TraceError(ValueError):
    """Error: a file is not a valid trace of arrivals. The message says why, and in which row or
    line."""


@dataclass(frozen=True)
class TraceFile:
    """A trace file of which Perseus has read only the beginning, to find its format and columns.

    `format` is a text such as "a CSV file". `columns` contains the names of the columns, or their
    numbers ("1", "2", ...) if the file has no header. `first` contains the fields of the first row
    with data. `first_row` is the number of this row in the file: 2 after a header, otherwise 1. The
    function `read` returns the columns with the given names as a pyarrow Table, and raises
    TraceError for invalid rows.
    """

    path: Path
    format: str
    columns: tuple[str, ...]
    first: tuple[str, ...]
    first_row: int
    read: Callable[[Sequence[str]], Any]

    def described(self) -> str:
        """Return a text with the format, the columns and the first row of the file, for error
        messages."""
        columns = ", ".join(map(repr, self.columns[:20]))
        first = ", ".join(repr(text[:40]) for text in self.first[:20])
        return f"{self.path} is {self.format} with the columns {columns}; its first row is {first}"

    def refuse(self, bad: Sequence[str]) -> None:
        """Raise TraceError if there are invalid rows. `bad` contains one text for each invalid row.
        The message of the error shows the first MAX_LISTED of these texts."""
        if bad:
            more = len(bad) - MAX_LISTED
            rest = f"; and {more} more invalid row{'s' if more > 1 else ''}" if more > 0 else ""
            raise TraceError(f"{self.path} {'; '.join(bad[:MAX_LISTED])}{rest}")


def open_trace(path: Path) -> TraceFile:
    """Detect the format and the columns of a trace file. Raises OSError if the file cannot be
    opened, and TraceError if Perseus cannot read it as a table with columns."""
    import pyarrow as pa

    with path.open("rb") as file:  # errors of open() are clearer than errors of pyarrow
        if file.read(len(PARQUET)) == PARQUET:
            return _parquet(path)
    with pa.input_stream(str(path), compression="detect") as stream:
        start = stream.read(HEAD_BYTES)
    whole_lines = start.rpartition(b"\n")[0] if len(start) == HEAD_BYTES else start
    try:
        head = whole_lines.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(f"{path} is neither text nor Parquet: {error}") from None
    lines = head.split("\n", 1)[0]
    if head.lstrip().startswith(("{", "[")) and not _is_log(lines):
        return _json_lines(path, head.lstrip())
    return _access_log(path, lines) if _is_log(lines) else _csv(path, head)


def number(text: str) -> float:
    """Return the number that a text states; NaN if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def moment(text: str) -> tuple[float, bool]:
    """Read a date with a time. Return the seconds since 1970, and whether the text names a time
    zone.

    Without a time zone, the function reads the date as UTC. If the text is not an ISO 8601 date
    with a time, the seconds are NaN.
    """
    try:
        found = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
    except ValueError:
        return float("nan"), False
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp(), bool(found.tzinfo)


def is_date(text: str) -> bool:
    return moment(text)[0] == moment(text)[0] and number(text) != number(text)


def _is_log(line: str) -> bool:
    return LOG_LINE.match(line) is not None


def _parquet(path: Path) -> TraceFile:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        columns = tuple(file.schema_arrow.names)
        batch = next(file.iter_batches(batch_size=1), None)
    except pa.ArrowException as error:
        raise TraceError(f"{path} is a damaged Parquet file: {error}") from None
    first = () if batch is None else tuple(str(batch.column(i)[0]) for i in range(len(columns)))

    def read(names: Sequence[str]) -> Any:
        try:
            return pq.read_table(path, columns=list(names))
        except pa.ArrowException as error:
            raise TraceError(f"{path} is a damaged Parquet file: {error}") from None

    return TraceFile(path, "a Parquet file", columns, first, 1, read)


def _json_lines(path: Path, head: str) -> TraceFile:
    import pyarrow as pa
    import pyarrow.json as pa_json

    try:
        row = json.loads(head.split("\n", 1)[0])
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict) or not row:
        raise TraceError(
            f"{path} line 1: {head[:40]!r} is not a JSON object (write one object with named"
            " values per line)"
        )
    # The reader parses only the selected columns: other columns may have values of several types.
    types = {bool: pa.bool_(), int: pa.float64(), float: pa.float64()}
    values = _first_values(row, head.split("\n")[1:])
    kinds = {name: types.get(type(value), pa.string()) for name, value in values.items()}

    def read(names: Sequence[str]) -> Any:
        wanted = pa.schema([(name, kinds[name]) for name in names])
        parse = pa_json.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")
        large = pa_json.ReadOptions(block_size=1 << 26)
        try:
            return pa_json.read_json(str(path), read_options=large, parse_options=parse)
        except pa.ArrowException as error:
            raise TraceError(f"{path} cannot be read as JSON lines: {error}") from None

    first = tuple(each if isinstance(each, str) else json.dumps(each) for each in row.values())
    return TraceFile(path, "a file of JSON lines", tuple(row), first, 1, read)


def _first_values(row: dict[str, Any], lines: Iterable[str]) -> dict[str, Any]:
    """Return one value of each column, from which the caller infers the type of the column.

    `row` is the first row, and `lines` contains the next rows as JSON. If a value in `row` is null,
    the function looks in `lines` for a value that is not null.
    """
    values = dict(row)
    for line in lines:
        empty = [name for name, value in values.items() if value is None]
        if not empty:
            break
        try:
            more = json.loads(line)
        except (ValueError, RecursionError):
            continue  # the reader of the whole file names the invalid line
        if isinstance(more, dict):
            values |= {name: more.get(name) for name in empty}
    return values


def _csv(path: Path, head: str) -> TraceFile:
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    delimiter = max(DELIMITERS, key=head.lstrip("\r\n").split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(head), delimiter=delimiter)
    rows = filter(None, reader)
    try:
        top = _stripped(next(rows, []))
        top_lines = reader.line_num
        has_names = bool(top) and not _is_data(top)
        first = _stripped(next(rows, [])) if has_names else top
    except csv.Error as error:
        raise TraceError(f"{path} is not a valid CSV file: {error}") from None
    columns = top if has_names else tuple(str(i + 1) for i in range(len(top)))
    skipped = top_lines if has_names else 0

    def read(names: Sequence[str]) -> Any:
        bad = list[str]()

        def note(row: Any) -> str:
            bad.append(
                f"row {row.number}: {row.text[:40]!r} has {row.actual_columns} of"
                f" {row.expected_columns} columns"
            )
            return "skip"

        # Only with one thread do the errors of pyarrow contain the numbers of invalid rows.
        options = pa_csv.ReadOptions(use_threads=False, skip_rows=skipped, column_names=columns)
        texts = dict.fromkeys(names, pa.string())
        try:
            table = pa_csv.read_csv(
                str(path),
                options,
                pa_csv.ParseOptions(delimiter=delimiter, invalid_row_handler=note),
                pa_csv.ConvertOptions(
                    column_types=texts, include_columns=list(texts), strings_can_be_null=False
                ),
            )
        except pa.ArrowException as error:
            raise TraceError(f"{path} is not a valid CSV file: {error}") from None
        file.refuse(bad)
        return table

    file_format = "a CSV file" if has_names else "a text file without column names"
    file = TraceFile(path, file_format, columns, first, 2 if has_names else 1, read)
    if not top:
        raise TraceError(f"{path} is empty")
    return file


def _stripped(row: Sequence[str]) -> tuple[str, ...]:
    return tuple(text.strip() for text in row)


def _is_data(row: Sequence[str]) -> bool:
    """Return whether a row contains data and is not a header. A row contains data if all its fields
    are numbers, or if at least one field is a date with a time."""
    return all(number(text) == number(text) for text in row) or any(map(is_date, row))


def _access_log(path: Path, line: str) -> TraceFile:
    import pyarrow as pa

    def read(names: Sequence[str]) -> Any:
        bad, rows = list[str](), list[tuple[str, ...]]()
        with pa.input_stream(str(path), compression="detect") as stream:
            lines = io.TextIOWrapper(stream, "utf-8-sig", errors="replace")
            for i, text in enumerate(map(str.strip, lines), start=1):
                if row := _log_row(text):
                    rows.append(row)
                elif text:
                    bad.append(f"line {i}: {text[:40]!r} is not a line of an access log")
        file.refuse(bad)
        columns = dict(zip(LOG_COLUMNS, zip(*rows, strict=True), strict=True))
        return pa.table({name: pa.array(columns[name]) for name in names})

    file = TraceFile(path, "an access log", LOG_COLUMNS, _log_row(line), 1, read)
    return file


def _log_row(line: str) -> tuple[str, ...]:
    """Return the fields LOG_COLUMNS of a line of an access log, with the time in ISO 8601; empty if
    the line has another format."""
    found = LOG_LINE.match(line)
    if found is None or found[4] not in MONTHS:
        return ()
    host, user, day, month, year, clock, zone, request, status = found.groups()
    method, _, rest = request.partition(" ")
    time = f"{year}-{MONTHS.index(month) + 1:02}-{day}T{clock}{zone}"
    return host, user, time, method, rest.partition(" ")[0], status
