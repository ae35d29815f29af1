"""Conclusion: the neural networks on the Pareto front of accuracy and cost."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.links import to_table
from perseus.report.numbers import counted, listed, significant, usd
from perseus.results.tables.catalogue import MEASURED, front_order
from perseus.results.tables.catalogue_predictions import ALIKE, within
from perseus.study.runtimes import RUNTIMES

MAX_NAMED = 8
SLAS = {
    "times_unloaded": "SLA: a multiple of the latency without load",
    "latency": "SLA of the study",
}
COST = "usd_per_million_inferences"


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each SLA and request batch size of a catalogue. If the study has
    predictions of times per image, yield a conclusion on their errors, too."""
    catalogue = tables["catalogue"]
    known = catalogue[catalogue["on_front"].notna()]
    for (images, sla), rows in known.groupby(["request_batch_size", "sla"], sort=False):
        # A cell without a limit has no SLA in the table, and is not on a front.
        of_sla = catalogue["sla"].isin((sla, "")) & (catalogue["request_batch_size"] == images)
        yield _front(rows, catalogue[of_sla], str(images), str(sla))
    if not catalogue.empty and known.empty:
        headline = "The networks on the Pareto front of accuracy and cost are not known"
        yield Conclusion(
            "unknown", headline, _without(catalogue, catalogue), (to_table("catalogue"),)
        )
    predictions = tables["catalogue_predictions"]
    if len(predictions):
        yield _predicted(predictions)


def _front(rows: pd.DataFrame, of_sla: pd.DataFrame, images: str, sla: str) -> Conclusion:
    """Return the conclusion on one SLA. `of_sla` has the rows of all cells with this SLA, and
    `rows` has only the rows with a known cost and accuracy."""
    fronts = _fronts(rows)
    name, first = fronts[0]
    low, high = first.iloc[0], first.iloc[-1]
    ends = f"{significant(low['accuracy'])} % accuracy at {usd(low[COST])}"
    if len(first) > 1:
        ends += f" to {significant(high['accuracy'])} % at {usd(high[COST])}"
    on_front = first["model"].nunique()
    are = "is" if on_front == 1 else "are"
    accuracies = "measured accuracies" if name == MEASURED else name
    return Conclusion(
        "unclear",
        f"{on_front} of {counted(rows['model'].nunique(), 'network')} {are} on the Pareto front:"
        f" {ends} per million images"
        f" ({accuracies}, {counted(images, 'image')} per request, {SLAS[sla]})",
        (*(_networks(each) for _, each in fronts), *_without(rows, of_sla)),
        (to_table("catalogue"),),
    )


def first_front(catalogue: pd.DataFrame) -> pd.DataFrame:
    """Return the Pareto front that the first conclusion describes, from the cheapest network to the
    most expensive network. If no front is known, the result is empty."""
    rows = first_group(catalogue)
    return rows if rows.empty else _fronts(rows)[0][1]


def first_group(catalogue: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the table catalogue that the first conclusion uses.

    These rows have the same SLA and the same number of images per request, and a known cost and
    accuracy.
    """
    known = catalogue[catalogue["on_front"].notna()]
    if known.empty:
        return known
    return next(rows for _, rows in known.groupby(["request_batch_size", "sla"], sort=False))


def _fronts(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the name and the rows of each Pareto front, with the fronts in the order of
    `front_order`. The first row of a front is its cheapest network."""
    front = rows[rows["on_front"].astype(bool)].sort_values(COST)
    fronts = [(str(name), of) for name, of in front.groupby("front", sort=False)]
    return sorted(fronts, key=lambda each: front_order(each[0]))


def _networks(front: pd.DataFrame) -> str:
    """Return a sentence that names the networks on a Pareto front."""
    each = [_named(row) for _, row in front.iterrows()]
    shown = each[:: -(-len(each) // MAX_NAMED)]
    few = f" These are evenly spread examples of the {len(each)} networks on the front."
    return f"{listed(shown)}.{few if len(shown) < len(each) else ''}"


def _named(row: pd.Series) -> str:
    measured = "measured " if row["front"] == MEASURED else ""
    return (
        f"{row['model']} ({_way(row)}) has {significant(row['accuracy'])} % {measured}top-1"
        f" accuracy at {significant(row[COST])} USD per million images"
    )


def short_name(row: pd.Series) -> str:
    """Return a network with its runtime, precision and accuracy as text."""
    return f"{row['model']}, {_way(row)}, {significant(row['accuracy'])} % accuracy"


def _way(row: pd.Series) -> str:
    runtime = RUNTIMES.get(row["runtime"])
    return f"{runtime.title if runtime else row['runtime']}, {row['precision']}"


def _without(rows: pd.DataFrame, of_sla: pd.DataFrame) -> tuple[str, ...]:
    """Return sentences about what the conclusion leaves out.

    For networks of `rows` in other precisions than fp32, the sentences state the relative error of
    the responses. For cells of `of_sla` without a certified rate, a sentence states their number.
    """
    told = []
    published = rows[rows["front"] != MEASURED]
    others = published[
        ~published["precision"].isin(("fp32", "")) & published["relative_error"].notna()
    ]
    for precision, of in others.groupby("precision", sort=False):
        told.append(
            f"In {precision}, the median relative error of the output values is"
            f" {significant(of['relative_error'].median())}. The published accuracies do not take"
            " this error into account."
        )
    failed = of_sla[of_sla["verdict"] != "ok"].drop_duplicates("cell")
    if len(failed):
        first = failed.iloc[0]
        told.append(
            f"There is no certified rate for {counted(len(failed), 'cell')}, for example"
            f" {first['cell']} ({first['reason']})."
        )
    return tuple(told)


def _predicted(rows: pd.DataFrame) -> Conclusion:
    """Return the conclusion on the errors of predicted times per image. Perseus predicts the time
    of a measured network from the measurements of the other networks."""
    lines = []
    for (server, setting, runtime, precision, images), of in rows.groupby(list(ALIKE), sort=False):
        grid = f" ({setting})" if setting else ""
        strangers = of["family_ratio"].dropna()
        beyond = (
            f"; if the prediction uses only networks of other families, {_factors(strangers)}"
            if len(strangers)
            else ""
        )
        lines.append(
            f"{runtime} in {precision} on {server}{grid},"
            f" {counted(str(images), 'image')} per request, {counted(len(of), 'network')}:"
            f" {_factors(of['ratio'])}{beyond}."
        )
    headline = (
        "Perseus predicts the time per image of an unmeasured network from its graph: half of the"
        f" predictions are within a factor of {within(rows['ratio'].to_numpy(), 0.5):.2f} of the"
        " measured time"
    )
    return Conclusion("perhaps", headline, tuple(lines), (to_table("catalogue_predictions"),))


def _factors(ratios: pd.Series) -> str:
    values = ratios.to_numpy()
    return (
        f"half of the predictions differ from the measured time by a factor of at most"
        f" {within(values, 0.5):.2f}, and 90 % of the predictions by a factor of at most"
        f" {within(values, 0.9):.2f}"
    )
