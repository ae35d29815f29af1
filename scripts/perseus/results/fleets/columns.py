"""Columns that several fleet tables share, and functions that fill them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from perseus.host.parquet import REAL, TEXT
from perseus.results.fleets.cheapest import GAP, STATUSES
from perseus.results.fleets.plans import Plan
from perseus.results.records import Row
from perseus.results.schema import TOLERANCE, column, holds

if TYPE_CHECKING:  # needed only for type checks
    import pandas as pd

FLEET = [
    column("study", TEXT, "", "name of the study"),
    column(
        "level",
        TEXT,
        "",
        "level of the demand: low, typical or peak. If the demand has only one level, its name is"
        " `demand`.",
    ),
    column(
        "strategy",
        TEXT,
        "",
        "servers that the fleet may have: dedicated (only dedicated servers), sharing allowed"
        " (dedicated and shared servers) or one type of server (dedicated and shared servers of the"
        " cheapest type)",
    ),
]
"""The first columns of every table of fleets."""

SOLVED = [
    column(
        "gap",
        REAL,
        "share",
        "gap of the solver: a cheaper fleet may exist, but saves at most this share of the price of"
        " this fleet",
    ),
    column(
        "status",
        TEXT,
        "",
        f"status of the solver: optimal (the gap is at most {GAP:.2%}) or time limit (the solver"
        " stopped at a larger gap). Empty without a fleet.",
        choices=("", *STATUSES),
    ),
]
"""Columns that say whether a cheaper fleet may exist."""

FLEET_OR_REASON = holds(
    "a row has either a fleet or a reason why it has no fleet",
    lambda servers, reason: np.isnan(servers) == (reason != ""),
    null=True,
)


def _adds_up(proportion: pd.Series) -> pd.Series:
    """For each text such as "a 76%, b 24%", return whether its percentages add up to 100 %, apart
    from rounding."""
    shares = proportion.str.findall(r" (\d+(?:\.\d+)?)%(?:,|$)")
    return shares.map(lambda each: abs(sum(map(float, each)) - 100) <= len(each) / 2 * _last(each))


def _last(shares: Sequence[str]) -> float:
    """Return one unit of the last decimal place of percentages: 0.1 for "24.5"."""
    digits = max((len(share.partition(".")[2]) for share in shares), default=0)
    return 10.0**-digits * (1 + TOLERANCE)


PROPORTION = holds("the percentages in the column `proportion` add up to 100 %", _adds_up)


def fleet(study: str, plan: Plan) -> Row:
    return {"study": study, "level": plan.level.name, "strategy": plan.strategy}


def solved(plan: Plan) -> Row:
    return {"gap": plan.gap, "status": plan.status}
