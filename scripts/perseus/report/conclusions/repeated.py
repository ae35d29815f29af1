"""Group repeated measurements by experiment, and write parts of sentences about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pandas as pd

from perseus.report.numbers import bounds, listed


def runs(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """For each experiment, yield its name in the report and the rows of all its repeats.

    The name is the name of the server. If a server has several experiments, a name such as
    "cpu1 (cpu1.shared.soak)" also contains the name of the cells, without the number of the repeat.
    """
    yield from _distinct_names(table, table["cell"].str.replace(r"\.r\d+$", "", regex=True))


def scenarios(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """For each scenario, yield its name in the report, and the rows of all its load lines."""
    yield from _distinct_names(table, table["scenario"])


def _distinct_names(table: pd.DataFrame, names: pd.Series) -> Iterator[tuple[str, pd.DataFrame]]:
    on_server = names.groupby(table["server"]).nunique()
    for name, rows in table.groupby(names, sort=False):
        server = str(rows["server"].iloc[0])
        yield (server if on_server[server] == 1 else f"{server} ({name})"), rows


def over_repeats(
    rows: pd.DataFrame, column: str, low: str, high: str, write: Callable[[float], str]
) -> str:
    """Return a value and its interval as text. For several repeats, the text has the mean and the
    range of the values."""
    values = rows[column].dropna()
    if len(values) > 1:
        ends = bounds(values.min(), values.max(), write)
        return f"{write(values.mean())} ({ends} in {len(values)} repeats)"
    row = rows.loc[values.index[0]]
    return write(row[column]) + interval(row[low], row[high], write)


def interval(low: float, high: float, write: Callable[[float], str]) -> str:
    """Return an interval as text in brackets, after a space, such as " (11.9 to 12.8)". The text is
    empty if the interval is unknown. An interval from 0 to infinity becomes " (no bound)"."""
    if low == 0 and math.isinf(high):
        return " (no bound)"
    return "" if pd.isna(low) or pd.isna(high) else f" ({bounds(low, high, write)})"


def times(value: float) -> str:
    """Return a ratio as text."""
    return f"{value:.2f}"


def tenants_of(rows: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(rows["tenant"]))


def who(rows: pd.DataFrame) -> str:
    return listed(tenants_of(rows)) if len(rows) else ""


def reasons(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the different reasons why results are missing, as sentences."""
    known = rows["reason"].dropna()
    return tuple(f"{reason}." for reason in dict.fromkeys(known[known != ""]))
