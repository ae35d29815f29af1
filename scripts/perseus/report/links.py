"""Make links from sentences of the report to its sections, tables and rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pandas as pd

from perseus.report.shown_tables import MAX_ROWS, rows_of
from perseus.results.tables import module_of

MAX_LINES: Final = 12
"""Largest number of load lines to which a conclusion has separate links."""

PEAKS: Final = "Peaks"
COSTS: Final = "Costs"


@dataclass(frozen=True)
class Link:
    """A link: the text `label` links to the element `id` of the page."""

    label: str
    id: str


def anchor(title: str) -> str:
    """Return the id of the section of the page with this title."""
    return title.lower().replace(" ", "-")


def line_id(row: Mapping[str, object]) -> str:
    """Return the id of the row of a load line in the table peaks."""
    return f"line-{row['scenario']}.{row['load_line']}"


def on_line(frame: pd.DataFrame, row: pd.Series) -> pd.Series:
    """Return a mask of the rows of `frame` that have the same load line as `row`."""
    return (frame["scenario"] == row["scenario"]) & (frame["load_line"] == row["load_line"])


def to_section(title: str) -> Link:
    return Link(title, anchor(title))


def to_table(name: str) -> Link:
    """Return a link to the section of a table."""
    return to_section(module_of(name).TITLE)


def to_lines(peaks: pd.DataFrame) -> tuple[Link, ...]:
    """Return a link to each of these rows of the table peaks.

    The result is a single link to the table if there are more than MAX_LINES rows, or if the report
    does not show all of these rows. `peaks` must have the row index of the whole table.
    """
    if len(peaks) > MAX_LINES or (peaks.index >= MAX_ROWS).any():
        return (to_section(PEAKS),)
    return tuple(Link(str(row["mix"]), line_id(row)) for row in rows_of(peaks))
