"""From how many requests in flight on a server gives no more, in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from perseus.report.answers.answer import Answer, Tables
from perseus.report.answers.repeated import over_repeats, reasons, runs, tenants_of, who
from perseus.report.links import to_table
from perseus.report.numbers import significant


def answers(tables: Tables) -> Iterator[Answer]:
    """An answer for each scenario that closed loops loaded."""
    loops = tables["concurrency"]
    for on, rows in runs(tables["knees"]):
        yield _answer(on, rows, loops[loops["cell"].isin(rows["cell"])])


def _answer(on: str, rows: pd.DataFrame, loops: pd.DataFrame) -> Answer:
    behind = (to_table("knees"),)
    known = rows[rows["bracketed"].astype(bool) & rows["saturated_rps"].notna()]
    if known.empty:
        headline = f"From how many requests in flight on {on} gains no more is not known"
        return Answer("unknown", headline, reasons(rows), behind)
    knee = over_repeats(known, "knee", "knee_low", "knee_high", significant)
    headline = (
        f"Of {who(loops)}, {on} serves hardly more from"
        f" {significant(known['knee'].mean())} requests in flight on"
    )
    first = f"The knee lies at {knee} requests in flight."
    valid = loops[loops["valid"].astype(bool)].groupby("cell")["concurrency"].max()
    highest_levels = known["cell"].map(valid) * len(tenants_of(loops))
    return Answer("unclear", headline, (first, *_beyond(known, highest_levels)), behind)


def _beyond(known: pd.DataFrame, highest_levels: pd.Series) -> Iterator[str]:
    """What more in flight does, if the fit bounds it: with coherency there is a highest throughput,
    which counts where a valid level of the repeat reached it, too."""
    tends = known[known["kappa"].isna()]
    if len(tends) == len(known):
        ends = ("saturated_low_rps", "saturated_high_rps")
        most = over_repeats(tends, "saturated_rps", *ends, significant)
        yield f"With more in flight throughput tends to {most} requests/s."
    falls = known[(known["highest"] <= highest_levels) & np.isfinite(known["highest_high"])]
    if len(falls):
        often = "" if len(falls) == len(known) else f" in {len(falls)} of {len(known)} repeats"
        most = significant(falls["highest"].mean())
        yield f"Beyond {most} requests in flight throughput falls{often}."
