"""How long a fresh server takes, in words."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.report.answers.answer import Answer, Tables
from perseus.report.answers.repeated import runs, tenants_of, who
from perseus.report.links import to_table
from perseus.report.numbers import bounds, significant


def answers(tables: Tables) -> Iterator[Answer]:
    """An answer for each scenario whose server was started again and again."""
    for rows in runs(tables["startup"]):
        server, behind = rows["server"].iloc[0], (to_table("startup"),)
        times = {str(cache): _ready(of) for cache, of in rows.groupby("page_cache", sort=False)}
        ready = " or ".join(f"{time} with a {cache} page cache" for cache, time in times.items())
        headline = f"A fresh {server} server of {who(rows)} is ready after {ready}"
        first = (_first(rows[rows["tenant"] == name], name) for name in tenants_of(rows))
        yield Answer("unclear", headline, tuple(filter(None, first)), behind)


def _ready(rows: pd.DataFrame) -> str:
    """The median over starts, each of which has a row for each tenant."""
    starts = rows.drop_duplicates(["cell", "start"])["ready_s"]
    ends = bounds(starts.min(), starts.max(), significant)
    return f"{significant(starts.median())} s ({ends} in {len(starts)} starts)"


def _first(rows: pd.DataFrame, name: str) -> str:
    first, steady = (rows[f"{which}_inference_ms"].median() for which in ("first", "steady"))
    if pd.isna(first) or pd.isna(steady):
        return ""
    return (
        f"The first request to {name} takes {significant(first)} ms, later ones"
        f" {significant(steady)} ms (medians)."
    )
