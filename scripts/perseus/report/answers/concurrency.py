"""From how many requests in flight on a server gives no more, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from perseus.report.answers.answer import Answer, Tables
from perseus.report.answers.repeated import over_repeats, reasons, runs, who
from perseus.report.links import to_table
from perseus.report.numbers import significant


def answers(tables: Tables) -> Iterator[Answer]:
    """An answer for each scenario that closed loops loaded."""
    loops = tables["concurrency"]
    for rows in runs(tables["knees"]):
        yield _answer(rows, who(loops[loops["cell"].isin(rows["cell"])]))


def _answer(rows: pd.DataFrame, names: str) -> Answer:
    server, behind = rows["server"].iloc[0], (to_table("knees"),)
    known = rows[rows["bracketed"].astype(bool) & rows["saturated_rps"].notna()]
    if known.empty:
        headline = f"From how many requests in flight on {server} gains no more is not known"
        return Answer("unknown", headline, reasons(rows), behind)
    knee = over_repeats(known, "knee", "knee_low", "knee_high", significant)
    most = over_repeats(
        known, "saturated_rps", "saturated_low_rps", "saturated_high_rps", significant
    )
    headline = (
        f"Of {names}, {server} serves hardly more from"
        f" {significant(known['knee'].mean())} requests in flight on"
    )
    first = f"The knee lies at {knee} requests in flight; throughput tends to {most} requests/s."
    return Answer("unclear", headline, (first, *_beyond(known)), behind)


def _beyond(known: pd.DataFrame) -> Iterator[str]:
    falls = known[np.isfinite(known["highest"].astype(float))]
    if len(falls):
        yield f"Beyond {significant(falls['highest'].mean())} requests in flight throughput falls."
