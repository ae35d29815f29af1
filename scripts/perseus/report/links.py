"""From what is said to the part of the page behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd

from perseus.report.shown import MOST_ROWS, rows_of
from perseus.results.tables import module_of

MOST_LINES: Final = 12
"""Load lines that are named one by one."""

PEAKS: Final = "Peaks"
COSTS: Final = "Costs"


@dataclass(frozen=True)
class Link:
    """`words` that lead to the element `id`."""

    words: str
    id: str


def anchor(title: str) -> str:
    """The id of the section of that title."""
    return title.lower().replace(" ", "-")


def line_id(row: Mapping[str, object]) -> str:
    """The id of a load line's row of the peaks."""
    return f"line-{row['scenario']}.{row['load_line']}"


def on_line(frame: pd.DataFrame, row: pd.Series) -> pd.Series:
    """Which rows are of the load line that a row of any table is of."""
    return (frame["scenario"] == row["scenario"]) & (frame["load_line"] == row["load_line"])


def to_section(title: str) -> Link:
    return Link(title, anchor(title))


def to_table(name: str) -> Link:
    """To the section of a table that has one of its own."""
    return to_section(module_of(name).TITLE)


def to_lines(peaks: pd.DataFrame) -> tuple[Link, ...]:
    """To these rows of the peaks, from where links lead to cells and windows; to all of them where
    these are many, or farther down than the page goes. The index is that of the whole table."""
    if len(peaks) > MOST_LINES or (peaks.index >= MOST_ROWS).any():
        return (to_section(PEAKS),)
    return tuple(Link(str(row["mix"]), line_id(row)) for row in rows_of(peaks))
