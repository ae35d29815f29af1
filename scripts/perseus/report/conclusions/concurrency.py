"""Conclusion: the knee of each server. This is the concurrency in a closed loop beyond which
throughput hardly grows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.repeated import over_repeats, reasons, runs, tenants_of, who
from perseus.report.links import to_table
from perseus.report.numbers import significant


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each `concurrency` experiment, with all its repeats."""
    loops = tables["concurrency"]
    for on, rows in runs(tables["knees"]):
        yield _conclusion(on, rows, loops[loops["cell"].isin(rows["cell"])])


def _conclusion(on: str, rows: pd.DataFrame, loops: pd.DataFrame) -> Conclusion:
    behind = (to_table("knees"),)
    known = rows[rows["bracketed"].astype(bool) & rows["saturated_rps"].notna()]
    if known.empty:
        headline = f"The knee of {on} is not known"
        return Conclusion("unknown", headline, reasons(rows), behind)
    knee = over_repeats(known, "knee", "knee_low", "knee_high", significant)
    headline = (
        f"{on} reaches its knee with {who(loops)} at"
        f" {significant(known['knee'].mean())} requests in flight"
    )
    first = f"The knee, beyond which throughput hardly grows, lies at {knee} requests in flight."
    valid = loops[loops["valid"].astype(bool)].groupby("cell")["concurrency"].max()
    highest_levels = known["cell"].map(valid) * len(tenants_of(loops))
    return Conclusion("unclear", headline, (first, *_beyond(known, highest_levels)), behind)


def _beyond(known: pd.DataFrame, highest_levels: pd.Series) -> Iterator[str]:
    """Yield sentences about the throughput beyond the knee, according to the fitted scalability
    law.

    Without a coherency term (kappa), throughput tends to a constant. With this term, throughput has
    a maximum and then falls. The sentences mention the maximum only if a valid window had at least
    as many requests in flight as the maximum.
    """
    tends = known[known["kappa"].isna()]
    if len(tends) == len(known):
        ends = ("saturated_low_rps", "saturated_high_rps")
        most = over_repeats(tends, "saturated_rps", *ends, significant)
        yield f"With more requests in flight, throughput tends to {most} requests/s."
    falls = known[(known["highest"] <= highest_levels) & np.isfinite(known["highest_high"])]
    if len(falls):
        often = "" if len(falls) == len(known) else f" in {len(falls)} of {len(known)} repeats"
        most = significant(falls["highest"].mean())
        yield f"Beyond {most} requests in flight, throughput falls{often}."
