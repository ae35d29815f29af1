"""Conclusion: drift, late requests and failed requests under constant load."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.peak.outcome import Outcome
from perseus.peak.verdict import ANSWERED
from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.repeated import interval, reasons, runs, who
from perseus.report.links import to_table
from perseus.report.numbers import listed, significant
from perseus.results.drift import Trend

MAX_FAILED_PERCENT = 100 * (1 - ANSWERED)
"""Too many requests fail if more than this percentage of the requests fails."""


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each `soak` experiment, with all its repeats."""
    for on, rows in runs(tables["soak"]):
        yield _conclusion(on, rows)


def _conclusion(on: str, rows: pd.DataFrame) -> Conclusion:
    behind = (to_table("soak"),)
    if ((rows["verdict"] == Outcome.INFEASIBLE) & (rows["windows"] > 0)).any():
        return Conclusion("no", f"{on} failed under the load", reasons(rows), behind)
    of_ok = rows[rows["verdict"] == Outcome.OK]
    seen, unseen = of_ok[of_ok["windows"] > 0], of_ok[of_ok["windows"] == 0]
    more = (*_unseen(unseen), *reasons(rows[rows["verdict"] != Outcome.OK]))
    if seen.empty:
        return Conclusion("unknown", f"The drift of values on {on} is not known", more, behind)
    found = {trend: seen[seen["drift"] == trend] for trend in Trend}
    slopes = tuple(
        _slope(row) for trend in (Trend.GROWS, Trend.FALLS) for _, row in found[trend].iterrows()
    )
    missed = seen[seen["exceedance"] > seen["allowed"]]
    more = (
        *(_missed(row) for _, row in missed.iterrows()),
        *(_failed_requests(row) for _, row in seen[seen["failed_requests"] > 0].iterrows()),
        *more,
    )
    failed = seen[seen["failing_from_hours"].notna()]
    if len(failed):
        headline = f"On {on}, requests of {who(failed)} failed during {_hours(failed)}"
        return Conclusion("no", headline, (*slopes, *more), behind)
    if len(grows := found[Trend.GROWS]):
        headline = f"On {on}, the following values grow during {_hours(grows)}: {_named(grows)}"
        return Conclusion("no", headline, (*slopes, *more), behind)
    if len(found[Trend.INFINITE]):
        headline = (
            f"On {on}, the data do not show whether the following values grow, because each"
            f" was infinite in some windows during {_hours(found[Trend.INFINITE])}:"
            f" {_named(found[Trend.INFINITE])}"
        )
        return Conclusion("unclear", headline, (*slopes, *more), behind)
    if len(short := found[Trend.UNKNOWN]):
        headline = (
            f"{_hours(short)} on {on} are too short to tell whether the following values grow:"
            f" {_named(short)}"
        )
        return Conclusion("unclear", headline, (*slopes, *more), behind)
    least = f"{significant(seen['hours'].min())} h"  # all quantities have equal hours
    headline = f"No measured value grows on {on} during {least}"
    return Conclusion("yes", headline, (*slopes, *more), behind)


def _hours(rows: pd.DataFrame) -> str:
    return f"{significant(rows['hours'].max())} h"


def _unseen(rows: pd.DataFrame) -> Iterator[str]:
    if len(rows):
        yield f"No window measured the following values: {_named(rows)}."


def _named(rows: pd.DataFrame) -> str:
    return listed(list(dict.fromkeys(_name(row) for _, row in rows.iterrows())))


def _name(row: pd.Series) -> str:
    of = "" if pd.isna(row["tenant"]) else f" of {row['tenant']}"
    return f"{row['quantity']}{of}"


def _slope(row: pd.Series) -> str:
    ends = interval(row["low_per_hour"], row["high_per_hour"], significant)
    return (
        f"{_name(row)}: starts at {significant(row['level'])} {row['unit']} and changes by"
        f" {significant(row['per_hour'])} {row['unit']} per hour{ends}."
    )


def _missed(row: pd.Series) -> str:
    return (
        f"{significant(100 * row['exceedance'])} % of {row['tenant']}'s requests were late;"
        f" its SLA allows {significant(100 * row['allowed'])} %."
    )


def _failed_requests(row: pd.Series) -> str:
    """Return a sentence with the number of failed requests of a tenant, and the time after which
    too many requests fail."""
    share, start = row["failed_requests"] / row["requests"], row["failing_from_hours"]
    since = f"; after {significant(start)} h, over {MAX_FAILED_PERCENT:g} % failed"
    return (
        f"{significant(100 * share)} % of {row['tenant']}'s requests failed"
        f" ({row['failed_requests']:.0f} of {row['requests']:.0f})"
        f"{since if pd.notna(start) else ''}."
    )
