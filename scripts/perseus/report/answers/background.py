"""What is left for one tenant beside others that stay, in words."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.report.answers.answer import Answer, Tables
from perseus.report.answers.repeated import interval, reasons
from perseus.report.links import to_table
from perseus.report.numbers import significant

MOST_LINES = 6
"""Load lines of which each has a sentence."""


def answers(tables: Tables) -> Iterator[Answer]:
    """An answer for each scenario in which tenants were searched beside others."""
    for _, rows in tables["background"].groupby("scenario", sort=False):
        yield _answer(rows)


def _answer(rows: pd.DataFrame) -> Answer:
    server, behind = rows["server"].iloc[0], (to_table("background"),)
    lines = rows.drop_duplicates("load_line")
    known = lines[lines["sharing_ratio"].notna()]
    if known.empty:
        headline = f"What {server} carries beside tenants that stay is not known"
        return Answer("unknown", headline, reasons(rows), behind)
    if (known["sharing_ratio_low"] > 1).all():
        kind, headline = (
            "yes",
            f"{server} carries more than dedicated servers, whichever tenants stay",
        )
    elif (known["sharing_ratio_high"] < 1).all():
        kind, headline = (
            "no",
            f"{server} carries less than dedicated servers, whichever tenants stay",
        )
    else:
        kind, headline = (
            "unclear",
            f"Too close to tell whether {server} gains beside tenants that stay",
        )
    without = (
        f"There is no estimate for {row['searched']} beside {row['held']} ({row['reason']})."
        for _, row in lines[lines["sharing_ratio"].isna()].iterrows()
    )
    said = (_of_line(row) for _, row in known.head(MOST_LINES).iterrows())
    return Answer(kind, headline, (*said, *without), behind)


def _of_line(row: pd.Series) -> str:
    share = interval(row["share_low"], row["share_high"], _ratio)
    ratio = interval(row["sharing_ratio_low"], row["sharing_ratio_high"], _ratio)
    return (
        f"Beside {row['held']} ({row['held_at']}) {row['searched']} reaches"
        f" {significant(row['peak_rps'])} requests/s, {_ratio(row['share'])}{share} of its peak"
        f" alone; together {_ratio(row['sharing_ratio'])}{ratio} of dedicated servers."
    )


def _ratio(value: float) -> str:
    return f"{value:.2f}"
