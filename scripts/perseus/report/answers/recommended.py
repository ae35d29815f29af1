"""What grids recommend, in words, as the report begins with it."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.report.answers.answer import Answer, Tables
from perseus.report.links import to_table

KINDS = {"clear": "yes", "too close to tell": "unclear", "only one": "perhaps", "none": "no"}
"""Of an answer, by the verdict of the table."""


def answers(tables: Tables) -> Iterator[Answer]:
    """An answer for each model and each mix of a grid; none of what the preset smoke measured."""
    recommendations = tables["recommendations"]
    for _, row in recommendations[recommendations["preset"] != "smoke"].iterrows():
        taken = row["setting"] if pd.notna(row["setting"]) else "no setting is to be recommended"
        close = ", but it is too close to tell" if row["verdict"] == "too close to tell" else ""
        headline = f"{row['mix']}: {taken}{close}"
        behind = (to_table("recommendations"),)
        yield Answer(KINDS[row["verdict"]], headline, (row["words"],), behind)
