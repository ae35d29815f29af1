"""Conclusion: the noise of the host, from repeated measurements of one configuration."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.repeated import interval, reasons, runs
from perseus.report.links import to_table
from perseus.report.numbers import percent


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each `aa` experiment, with all its repeats."""
    for on, rows in runs(tables["aa"]):
        yield _conclusion(on, rows)


def _conclusion(on: str, rows: pd.DataFrame) -> Conclusion:
    behind = (to_table("aa"),)
    known = rows[rows["noise_floor"].notna()]
    if known.empty:
        headline = f"The noise floor of {on} is not known"
        return Conclusion("unknown", headline, reasons(rows), behind)
    row = known.sort_values("noise_floor").iloc[-1]
    floor = percent(row["noise_floor"])
    headline = f"On {on}, differences of throughput below {floor} may be noise of this host"
    ends = {
        name: interval(row[f"{name}_low"], row[f"{name}_high"], percent)
        for name in ("windows", "restarts")
    }
    sentence = (
        "The standard deviation of the throughput is"
        f" {percent(row['between_windows'])}{ends['windows']} between"
        f" windows of a server, and {percent(row['between_restarts'])}{ends['restarts']} between"
        " restarted servers."
    )
    return Conclusion("unclear", headline, (sentence,), behind)
