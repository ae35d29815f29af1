"""Which tenants get on with each other, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from perseus.report.answers.answer import Answer, Tables
from perseus.report.answers.repeated import over_repeats, reasons, runs, tenants_of, who
from perseus.report.links import to_table
from perseus.report.numbers import listed


@dataclass(frozen=True)
class Pair:
    """Two tenants, and how each is slowed down by the other: rows of all repeats."""

    names: tuple[str, str]
    ways: tuple[pd.DataFrame, pd.DataFrame]

    @property
    def slowdown(self) -> float:
        """Of the one that suffers more, the mean of the repeats."""
        return float(max(rows["slowdown"].mean() for rows in self.ways))

    @property
    def ends(self) -> tuple[float, float]:
        """Between which it lies, by the intervals of both; anywhere, where one has none."""
        return (
            float(max(rows["slowdown_low"].fillna(0).min() for rows in self.ways)),
            float(max(rows["slowdown_high"].fillna(np.inf).max() for rows in self.ways)),
        )

    @property
    def words(self) -> str:
        return listed(self.names)

    def sentence(self) -> str:
        each = (
            f"{of} takes {over_repeats(rows, 'slowdown', 'slowdown_low', 'slowdown_high', _times)}"
            " times as long"
            for of, rows in zip(self.names, self.ways, strict=True)
        )
        return f"Of {self.words} beside each other, {listed(list(each))}."


def _times(value: float) -> str:
    return f"{value:.2f}"


def answers(tables: Tables) -> Iterator[Answer]:
    """An answer for each server with tenants beside each other at certain rates."""
    for rows in runs(tables["slowdown"]):
        yield _answer(rows)


def _answer(rows: pd.DataFrame) -> Answer:
    server, behind = rows["server"].iloc[0], (to_table("slowdown"),)
    beside = rows[rows["tenant"] != rows["beside"]]
    pairs = sorted(_pairs(beside), key=lambda pair: pair.slowdown)
    if not pairs:
        headline = f"How {who(rows)} get on with each other on {server} is not known"
        return Answer("unknown", headline, reasons(beside), behind)
    best, worst = pairs[0], pairs[-1]
    as_good = [pair for pair in pairs if pair.ends[0] <= best.ends[1]]
    sentences = [best.sentence(), worst.sentence()]
    if best is worst:
        headline = (
            f"On {server} {best.words} slow each other down by up to {_times(best.slowdown)} times"
        )
        sentences = [best.sentence()]
    elif len(as_good) == len(pairs):
        headline = (
            f"On {server} no pair surely gets on better than another: beside each other requests"
            f" take {_times(best.slowdown)} to {_times(worst.slowdown)} times as long"
        )
    else:
        headline = f"On {server} {best.words} get on best with each other, {worst.words} worst"
        sentences.append(
            f"Of {len(pairs)} pairs {len(as_good)} may be the best, by their intervals:"
            f" {'; '.join(pair.words for pair in as_good)}."
        )
    of_noise = _of_noise(beside)
    return Answer(
        "unclear", headline, (*sentences, *of_noise, *_of_sla(beside), *_missing(beside)), behind
    )


def _pairs(beside: pd.DataFrame) -> Iterator[Pair]:
    """Those of which both ways are known."""
    for a, b in combinations(tenants_of(beside), 2):
        found = [
            beside[(beside["tenant"] == of) & (beside["beside"] == other)].dropna(
                subset=["slowdown"]
            )
            for of, other in ((a, b), (b, a))
        ]
        if all(map(len, found)):
            yield Pair((a, b), (found[0], found[1]))


def _of_noise(beside: pd.DataFrame) -> Iterator[str]:
    told = beside["beyond_noise"].dropna()
    if len(told):
        beyond = int(told.astype(bool).sum())
        yield f"Of {len(told)} slowdowns {beyond} are beyond what this host's noise makes."


def _of_sla(beside: pd.DataFrame) -> Iterator[str]:
    known = beside[beside["comparisons"] > 0]
    over = known[known["over_sla"] > 0]
    if len(known) and over.empty:
        yield "In no window beside another a tenant fails its SLA."
    for (tenant, other), rows in over.groupby(["tenant", "beside"], sort=False):
        of = f"{rows['over_sla'].sum()} of {rows['comparisons'].sum()} windows"
        yield f"Beside {other} {tenant} fails its SLA in {of}."


def _missing(beside: pd.DataFrame) -> Iterator[str]:
    for _, row in beside[beside["slowdown"].isna()].iterrows():
        yield f"There is no slowdown of {row['tenant']} beside {row['beside']} ({row['reason']})."
