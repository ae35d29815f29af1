"""Conclusion: start time of a fresh server, or load time of the models on a remote server."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.repeated import reasons, runs, tenants_of, who
from perseus.report.links import to_table
from perseus.report.numbers import bounds, percent, significant


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each `startup` experiment, with all its repeats."""
    for on, rows in runs(tables["startup"]):
        yield _conclusion(on, rows)


def _conclusion(on: str, rows: pd.DataFrame) -> Conclusion:
    behind, started = (to_table("startup"),), rows[rows["ready_s"].notna()]
    if started.empty:
        headline = f"The start time of a fresh {on} server of {who(rows)} is not known"
        return Conclusion("unknown", headline, reasons(rows), behind)
    ready = " or ".join(
        _ready(str(cache), of) for cache, of in started.groupby("page_cache", sort=False)
    )
    if is_remote(started):
        headline = f"The remote server {on} loads the models of {who(rows)} in {ready}"
    else:
        headline = f"A fresh {on} server of {who(rows)} is ready after {ready}"
    first = (_first(rows[rows["tenant"] == name], name) for name in tenants_of(rows))
    return Conclusion("unclear", headline, (*filter(None, first), *_failed(rows)), behind)


def is_remote(rows: pd.DataFrame) -> bool:
    """Return whether the server is remote. On a remote server, Perseus measures only how long the
    running server takes to load its models. The page cache of the server is unknown, so the column
    resident_share is empty."""
    return bool(rows["resident_share"].isna().all())


def _failed(rows: pd.DataFrame) -> Iterator[str]:
    for reason in reasons(rows):
        yield f"Not every server started: {reason}"


def _ready(cache: str, rows: pd.DataFrame) -> str:
    """Return a text with the median start time and the range of all start times. For a remote
    server, the text has load times in place of start times.

    In `rows`, each start has one row per tenant. For a cold page cache, the text includes the share
    of the files that were still in the page cache.
    """
    starts = rows.drop_duplicates(["cell", "start"])
    times_s, left = starts["ready_s"], starts["resident_share"].median()
    what, state = ("load", "") if is_remote(rows) else ("start", f" with a {cache} page cache")
    often = f"one {what}" if len(starts) == 1 else f"{len(starts)} {what}s"
    ends = f"{bounds(times_s.min(), times_s.max(), significant)} in {often}"
    still = (
        f", {percent(left)} of the files still in the cache" if cache == "cold" and left > 0 else ""
    )
    return f"{significant(times_s.median())} s{state} ({ends}{still})"


def _first(rows: pd.DataFrame, name: str) -> str:
    first, steady = (rows[f"{which}_inference_ms"].median() for which in ("first", "steady"))
    if pd.isna(first) or pd.isna(steady):
        return ""
    return (
        f"The first request to {name} takes {significant(first)} ms, later requests"
        f" {significant(steady)} ms (medians)."
    )
