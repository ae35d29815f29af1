"""Whether anything drifts under a steady load, in words."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.report.answers.answer import Answer, Tables
from perseus.report.answers.repeated import interval, reasons, runs
from perseus.report.links import to_table
from perseus.report.numbers import listed, significant


def answers(tables: Tables) -> Iterator[Answer]:
    """An answer for each server that was loaded for long."""
    for rows in runs(tables["soak"]):
        yield _answer(rows)


def _answer(rows: pd.DataFrame) -> Answer:
    server, behind = rows["server"].iloc[0], (to_table("soak"),)
    if ((rows["verdict"] == "infeasible") & (rows["windows"] > 0)).any():
        return Answer("no", f"{server} did not outlive its load", reasons(rows), behind)
    if (rows["verdict"] != "ok").all():
        headline = f"Whether anything drifts on {server} is not known"
        return Answer("unknown", headline, reasons(rows), behind)
    hours = f"{significant(rows['hours'].max())} h"
    grows = rows[rows["drift"] == "grows"]
    if len(grows):
        names = listed(list(dict.fromkeys(map(_name, rows_of(grows)))))
        headline = f"On {server} something grows within {hours}: {names}"
        return Answer("no", headline, tuple(map(_slope, rows_of(grows))), behind)
    if (rows["drift"] == "too short to tell").any():
        headline = f"Whether anything grows on {server}, {hours} are too short to tell"
        return Answer("unclear", headline, (), behind)
    falls = tuple(map(_slope, rows_of(rows[rows["drift"] == "falls"])))
    return Answer("yes", f"Within {hours} nothing grows on {server}", falls, behind)


def rows_of(rows: pd.DataFrame) -> list[pd.Series]:
    return [row for _, row in rows.iterrows()]


def _name(row: pd.Series) -> str:
    return (
        str(row["quantity"]) if pd.isna(row["tenant"]) else f"{row['quantity']} of {row['tenant']}"
    )


def _slope(row: pd.Series) -> str:
    ends = interval(row["low_per_hour"], row["high_per_hour"], significant)
    return (
        f"{_name(row)}: from {significant(row['level'])} {row['unit']} by"
        f" {significant(row['per_hour'])} {row['unit']} per hour{ends}."
    )
