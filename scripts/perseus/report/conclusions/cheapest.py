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
    costs = tables["costs"][tables["costs"]["preset"] != "smoke"]
    alone = costs[(costs["kind"] == "dedicated") & costs["usd_per_million_inferences"].notna()]
    if alone.empty:
        return
    alone = alone[alone["pricing"] == alone["pricing"].iloc[0]]
    lines = []
    for model, rows in alone.groupby("mix", sort=False):
        precisions = rows["precision"].nunique()
        best = rows.sort_values("usd_per_million_inferences").iloc[0]
        servers = rows["server"].map(configured).nunique()
        if servers > 1:
            lines.append(
                f"{model} is cheapest on {best['server']}{_in(best) if precisions > 1 else ''}:"
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


def _in(row: pd.Series) -> str:
    """Return the precision as text. If servers compute in different precisions, their responses
    differ, so the conclusion states the precision."""
    return f" (in {row['precision']})"


def _unless_ok(row: pd.Series) -> str:
    return "" if row["verdict"] == "ok" else f"; {plain_words(row['verdict'])}: {row['reason']}"
