"""Conclusion: the networks that are worth their cost."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.links import to_table
from perseus.report.numbers import listed, significant
from perseus.results.tables.catalogue_predictions import within
from perseus.study.runtimes import RUNTIMES

MAX_NAMED = 8
SLAS = {
    "times_unloaded": "a multiple of their latency without load",
    "latency": "the SLA of the study",
}
COST = "usd_per_million_inferences"


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each SLA and batch of a catalogue, and one for failed cells."""
    catalogue = tables["catalogue"]
    known = catalogue[catalogue["on_front"].notna()]
    for (images, sla), rows in known.groupby(["request_batch_size", "sla"], sort=False):
        yield _front(rows, str(images), str(sla))
    if not catalogue.empty and known.empty:
        headline = "Which networks are worth their cost is not known"
        yield Conclusion("unknown", headline, _without(catalogue), (to_table("catalogue"),))
    predictions = tables["catalogue_predictions"]
    if len(predictions):
        yield _predicted(predictions)


def _front(rows: pd.DataFrame, images: str, sla: str) -> Conclusion:
    front = rows[rows["on_front"].astype(bool)].sort_values(COST)
    each = [_named(row) for _, row in front.iterrows()]
    shown = each[:: -(-len(each) // MAX_NAMED)]
    of = f"{_count(rows['model'].nunique(), 'network')}, {_count(images, 'image')} a request"
    few = "" if len(shown) == len(each) else f" Of {len(each)} on the front, evenly spread."
    return Conclusion(
        "unclear",
        f"Of {of}, within {SLAS[sla]}, {front['model'].nunique()} on the front of accuracy and"
        " cost",
        (f"{listed(shown)}.{few}", *_without(rows)),
        (to_table("catalogue"),),
    )


def _count(number: int | str, what: str) -> str:
    """Return a number with its noun, for example "1 network" or "2 networks"."""
    return f"{number} {what}" if str(number) == "1" else f"{number} {what}s"


def _named(row: pd.Series) -> str:
    runtime = RUNTIMES.get(row["runtime"])
    return (
        f"{row['model']} ({runtime.title if runtime else row['runtime']}, {row['precision']}) has"
        f" {significant(row['top1'])} % at {significant(row[COST])} USD per million images"
    )


def _without(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the caveats: errors of precisions other than fp32, and failed cells."""
    told = []
    others = rows[~rows["precision"].isin(("fp32", "")) & rows["relative_error"].notna()]
    for precision, of in others.groupby("precision", sort=False):
        told.append(
            f"In {precision} responses are off by a relative error of"
            f" {significant(of['relative_error'].median())} (median), which the published"
            " accuracies do not include."
        )
    failed = rows[rows["verdict"] != "ok"].drop_duplicates("cell")
    if len(failed):
        first = failed.iloc[0]
        told.append(
            f"{_count(len(failed), 'cell')} without a certified limit, such as {first['cell']}:"
            f" {first['reason']}."
        )
    return tuple(told)


def _predicted(rows: pd.DataFrame) -> Conclusion:
    """Return the errors of predicted times of networks that were not measured."""
    lines = []
    ways = ["runtime", "precision", "request_batch_size"]
    for (runtime, precision, images), of in rows.groupby(ways, sort=False):
        strangers = of["family_ratio"].dropna()
        beyond = (
            f", of families without a measured network {_factors(strangers)}"
            if len(strangers)
            else ""
        )
        lines.append(
            f"{runtime} in {precision}, {_count(str(images), 'image')} a request,"
            f" {_count(len(of), 'network')}:"
            f" {_factors(of['ratio'])}{beyond}."
        )
    headline = (
        "The time of a network that was not measured is predicted from its graph within a factor of"
        f" {within(rows['ratio'].to_numpy(), 0.5):.2f} in half of cases"
    )
    return Conclusion("perhaps", headline, tuple(lines), (to_table("catalogue_predictions"),))


def _factors(ratios: pd.Series) -> str:
    values = ratios.to_numpy()
    return f"half within {within(values, 0.5):.2f} times, nine of ten {within(values, 0.9):.2f}"
