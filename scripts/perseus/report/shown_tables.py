"""Define the tables of the page, and convert the values of tables into text with intervals and
links."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from perseus.report.numbers import bounds, chance, percent, significant

Row = dict[str, Any]

MAX_ROWS: Final = 300
"""A table on the page has at most this many rows, so that a browser sorts the table without a
noticeable delay."""

BELOW: Final = "\N{DAGGER}"
"""The page puts this mark beside the first failing rate of a load line if this rate is below the
interval of the estimate."""

NAMES: Final = ("verdict", "page_cache", "phase", "pricing")
"""Columns with identifiers such as client_limited. The report replaces the underscores of these
identifiers by spaces."""


@dataclass(frozen=True)
class Entry:
    """An entry of a table in the report: a text, an interval in a softer colour, and a link to the
    element with the id `link`."""

    text: str
    interval: str = ""
    link: str = ""

    def to(self, link: str) -> Entry:
        """Return the entry with a link. If the entry has no value, return it without a link."""
        return self if self.text == significant(None) else Entry(self.text, self.interval, link)


@dataclass(frozen=True)
class Remark:
    """A remark below a table; the first words of the remark are bold."""

    what: str
    text: str


@dataclass(frozen=True)
class ShownTable:
    """A table of the page, with a `note` above and `remarks` below.

    `rows` has the first MAX_ROWS of `total` rows. The CSV file with the name `file` has all rows.
    `ids` has the HTML id of each row. If the table has no rows, the page shows the text `empty`.
    """

    title: str
    note: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Entry]]
    ids: Sequence[str] = ()
    remarks: Sequence[Remark] = ()
    total: int = 0
    file: str = ""
    empty: str = ""


def rows_of(frame: pd.DataFrame, schema: pa.Schema | None = None) -> list[Row]:
    """Return the rows of a table as dictionaries, with None for missing values. If a column of
    `schema` has integers, its values become integers, since pandas may read them as floats."""
    whole = {field.name for field in schema or () if pa.types.is_integer(field.type)}
    return [
        {str(key): _plain(value, key in whole) for key, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _plain(value: Any, is_whole: bool) -> Any:
    if pd.isna(value):
        return None
    return int(value) if is_whole else value


def shares_of(schema: pa.Schema) -> frozenset[str]:
    """Return the names of columns with shares. The page shows shares in percent."""
    of = (schema.field(name) for name in schema.names)
    return frozenset(each.name for each in of if (each.metadata or {}).get(b"unit") == b"share")


def entry_of(row: Mapping[str, Any], columns: str | Sequence[str], shares: frozenset[str]) -> Entry:
    """Return the entry for the value in one column. If `columns` has three names, return the entry
    for a value and the two ends of its interval."""
    if not isinstance(columns, str):
        return span(row, columns, "percent" if columns[0] in shares else "significant")
    value = row[columns]
    if isinstance(value, bool):
        return Entry("yes" if value else "no")
    if columns in shares:
        return Entry(share(value))
    if columns.startswith("probability"):
        return Entry(probability(value))
    if isinstance(value, float) or value is None:
        return Entry(significant(value))
    return Entry(plain_words(value) if columns in NAMES else str(value))


def plain_words(name: str) -> str:
    """Return an identifier, such as a verdict, with spaces in place of underscores."""
    return name.replace("_", " ")


def fails_below(row: Mapping[str, Any] | pd.Series) -> bool:
    """Return whether the first failing rate of a load line is below the interval of its
    estimate."""
    failing, low = row["first_failing_rps"], row["ci_low_rps"]
    return failing is not None and low is not None and bool(failing < low)


def machine_text(row: Mapping[str, Any] | pd.Series) -> str:
    """Return the machine of a server as text, for example "0.25 of n1-standard-4 with T4:1"."""
    share = "" if row["share"] == 1 else f"{row['share']:.3g} of "
    return f"{share}{row['instance']}{' with ' if row['accelerator'] else ''}{row['accelerator']}"


def share(value: float | None) -> str:
    return significant(None) if value is None else percent(value)


def probability(value: float | None) -> str:
    return significant(None) if value is None else chance(value)


def count(value: float | None) -> str:
    return significant(None) if value is None else f"{value:.0f}"


def span(row: Mapping[str, Any], names: Sequence[str], scale: str = "significant") -> Entry:
    """Return an entry such as 12.3 (11.9 to 12.8). `names` has three columns: a value, and the low
    and the high end of its interval. `scale` is "significant", or "percent" for shares."""
    write = significant if scale == "significant" else share
    value, *ends = (row[name] for name in names)
    if value is None or None in ends:
        return Entry(write(value))
    return Entry(write(value), f"({between(row, names[1:], scale)})")


def between(row: Mapping[str, Any], names: Sequence[str], scale: str = "significant") -> str:
    """Return an interval as text, such as "11.9 to 12.8". `names` has the columns of the low and
    the high end. The text leaves out an infinite end."""
    write = significant if scale == "significant" else share
    low, high = (row[name] for name in names)
    if low is None or high is None:
        return write(None)
    is_positive = scale == "significant" and high > 0  # a lower end of 0 is also left out
    return bounds(-math.inf if is_positive and low == 0 else low, high, write)
