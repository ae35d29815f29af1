"""Conclusion: the recommended setting of each grid."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.links import to_table

KINDS = {"clear": "yes", "too close to tell": "unclear", "only one": "perhaps", "none": "no"}
"""Kind of the conclusion, by verdict in the table recommendations."""


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each model and mix of a grid. The function ignores results of the
    preset smoke."""
    recommendations = tables["recommendations"]
    for _, row in recommendations[recommendations["preset"] != "smoke"].iterrows():
        taken = row["setting"] if pd.notna(row["setting"]) else "no setting can be recommended"
        close = (
            ", but another setting may be better" if row["verdict"] == "too close to tell" else ""
        )
        headline = f"{row['mix']}: {taken}{close}"
        behind = (to_table("recommendations"),)
        yield Conclusion(KINDS[row["verdict"]], headline, (row["recommendation"],), behind)
