"""Conclusion: the cheapest dedicated server of each model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pandas as pd

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.sharing import pricing, usd_bounds
from perseus.report.links import COSTS, to_section
from perseus.report.numbers import significant
from perseus.report.shown_tables import plain_words
from perseus.study.setting import configured

MAX_NAMED: Final = 12
"""At most this many models have a sentence of their own in the conclusion."""


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion on all models that were measured on several servers. The function
    ignores results of the preset smoke."""
    lines = []
    for rows in costs_of_models(tables["costs"]):
        best, servers = rows.iloc[0], rows["server"].map(configured).nunique()
        lines.append(
            f"{best['mix']} is cheapest on {best['server']}{in_precision(rows)}:"
            f" {significant(best['usd_per_million_inferences'])} USD per million inferences"
            f" ({usd_bounds(best)}), according to the estimates for {servers} servers"
            f" ({pricing(best)} price){_unless_ok(best)}."
        )
    if len(lines) > MAX_NAMED:
        lines[MAX_NAMED:] = [f"The table lists all {len(lines)} models."]
    if lines:
        behind = (to_section(COSTS),)
        headline = "The cheapest dedicated server of each model"
        yield Conclusion("unclear", headline, tuple(lines), behind)


def costs_of_models(costs: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the costs of each model that was measured alone on several servers, the cheapest server
    first. The function ignores results of the preset smoke."""
    known = costs["usd_per_million_inferences"].notna() & (costs["preset"] != "smoke")
    alone = costs[known & (costs["kind"] == "dedicated")]
    for _, rows in alone[alone["pricing"].isin(alone["pricing"].head(1))].groupby(
        "mix", sort=False
    ):
        if rows["server"].map(configured).nunique() > 1:
            yield rows.sort_values("usd_per_million_inferences")


def in_precision(rows: pd.DataFrame) -> str:
    """Return the precision of the first row in brackets, such as " (in int8)".

    If all rows have the same precision, return an empty text. Otherwise, the precision warns the
    reader, because servers with different precisions give different responses.
    """
    return f" (in {rows['precision'].iloc[0]})" if rows["precision"].nunique() > 1 else ""


def _unless_ok(row: pd.Series) -> str:
    return "" if row["verdict"] == "ok" else f"; {plain_words(row['verdict'])}: {row['reason']}"
