"""Make links from conclusions and tables of the report to its sections, tables and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd

from perseus.report.shown_tables import MAX_ROWS, rows_of
from perseus.results.tables import module_of

MAX_LINES: Final = 12
"""A conclusion has separate links to at most this many load lines."""

PEAKS: Final = "Peaks"
COSTS: Final = "Costs"


@dataclass(frozen=True)
class Link:
    """A link: the text `label` links to the element `id` of the page."""

    label: str
    id: str


def anchor(title: str) -> str:
    """Return the HTML id of the section whose title is `title`."""
    return title.lower().replace(" ", "-")


def line_id(row: Mapping[str, object]) -> str:
    """Return the HTML id of the row of a load line in the table of peaks on the page."""
    return f"line-{row['scenario']}.{row['load_line']}"


def on_line(frame: pd.DataFrame, row: pd.Series) -> pd.Series:
    """Return a mask that is true for the rows of `frame` with the same load line as `row`."""
    return (frame["scenario"] == row["scenario"]) & (frame["load_line"] == row["load_line"])


def to_section(title: str) -> Link:
    return Link(title, anchor(title))


def to_table(name: str) -> Link:
    """Return a link to the section of the table `name` on the page."""
    return to_section(module_of(name).TITLE)


def to_lines(peaks: pd.DataFrame) -> tuple[Link, ...]:
    """Return a link to each row of `peaks`, which is a part of the table peaks.

    If `peaks` has more than MAX_LINES rows, or if the page does not show all its rows, return a
    single link to the table of peaks. The index of `peaks` must contain the numbers that its rows
    have in the whole table.
    """
    if len(peaks) > MAX_LINES or (peaks.index >= MAX_ROWS).any():
        return (to_section(PEAKS),)
    return tuple(Link(str(row["mix"]), line_id(row)) for row in rows_of(peaks))
