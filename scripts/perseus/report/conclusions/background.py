"""Conclusion: the peak of one tenant beside tenants at fixed rates."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.repeated import interval, reasons, scenarios, times
from perseus.report.links import to_table
from perseus.report.numbers import significant

MAX_LINES = 6
"""At most this many load lines have a sentence of their own in the conclusion."""


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each scenario with a `background` experiment."""
    for on, rows in scenarios(tables["background"]):
        yield _conclusion(on, rows)


def _conclusion(on: str, rows: pd.DataFrame) -> Conclusion:
    behind = (to_table("background"),)
    lines = rows.drop_duplicates("load_line")
    known = lines[lines["sharing_ratio"].notna()]
    if known.empty:
        headline = f"The capacity of {on} with all tenants but one at fixed rates is not known"
        return Conclusion("unknown", headline, reasons(rows), behind)
    missing = lines[lines["sharing_ratio"].isna()]
    without = (
        f"There is no estimate of the peak of {row['searched']} beside {row['background_tenants']}"
        f" ({row['background_at']}):"
        f" {row['reason']}."
        for _, row in missing.iterrows()
    )
    sentences = [_of_line(row) for _, row in known.iterrows()]
    if len(sentences) > MAX_LINES:
        sentences[MAX_LINES:] = ["The table has the peaks beside other loads."]
    kind, headline = _headline(on, known)
    if len(missing):
        headline += f" ({len(known)} of {len(lines)} load lines have an estimate)"
    return Conclusion(kind, headline, (*sentences, *without), behind)


def _headline(on: str, known: pd.DataFrame) -> tuple[str, str]:
    """Return the kind and the headline of the conclusion."""
    if (known["sharing_ratio_low"] > 1).all():
        return "yes", f"With all tenants but one at fixed rates, sharing {on} saves money"
    if (known["sharing_ratio_high"] < 1).all():
        return "no", (
            f"With all tenants but one at fixed rates, sharing {on} costs more than"
            " dedicated servers"
        )
    return "unclear", (
        "With all tenants but one at fixed rates, the data do not show whether sharing"
        f" {on} saves money"
    )


def _of_line(row: pd.Series) -> str:
    share = interval(row["share_low"], row["share_high"], times)
    ratio = interval(row["sharing_ratio_low"], row["sharing_ratio_high"], times)
    return (
        f"Beside {row['background_tenants']} ({row['background_at']}), {row['searched']} reaches"
        f" {significant(row['peak_rps'])} requests/s, {times(row['share'])}{share} of its"
        f" dedicated peak; the sharing ratio is {times(row['sharing_ratio'])}{ratio}."
    )
