"""Conclusion: at which demands models should share servers, for studies without a configured
demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import numpy as np
import pandas as pd

from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.servers_to_buy import not_sure, points_of, servers
from perseus.report.links import Link, on_line, to_lines, to_table
from perseus.report.numbers import listed, percent, significant, sure, usd

MAX_LISTED: Final = 4
"""A conclusion describes at most this many ranges of the demand, with one sentence each."""


@dataclass(frozen=True)
class Asked:
    """The question which servers are the cheapest for a group of models, at each total demand.

    The demands of the models rise in a fixed proportion. `demand_ranges` has rows of the table
    crossings, sorted by ascending demand. Within a range, the cheapest servers all have the same
    type, and either some of them are shared or none; only their number may change. `points` has
    the rows of the table peaks from which the ranges follow.
    """

    models: tuple[str, ...]
    demand_ranges: tuple[pd.Series, ...]
    points: pd.DataFrame

    @property
    def most_rps(self) -> float:
        """Highest examined demand for all models together, in requests/s."""
        return float(self.demand_ranges[-1]["to_rps"])

    def sentences(self, tables: Tables) -> list[str]:
        rows = self.demand_ranges[:MAX_LISTED]
        sentences = [_sentence(row, is_first=row is rows[0]) for row in rows]
        if len(self.demand_ranges) > MAX_LISTED:
            sentences.append(
                "The table of the cheapest servers by demand lists all"
                f" {len(self.demand_ranges)} ranges of demand up to {significant(self.most_rps)}"
                " requests/s."
            )
        return [
            *sentences,
            *self._mixes(tables["operating_points"]),
            *not_sure(tables, self.points),
        ]

    def _mixes(self, carried: pd.DataFrame) -> Iterator[str]:
        """If the models have several mixes, yield a sentence with the largest demand that one
        shared server carries with each mix."""
        found = self.mixes(carried)
        if len(found) < 2:
            return
        (most, best), *others = ((significant(rps), line["weights"]) for rps, line in found)
        with_others = listed([f"{rps} requests/s with the mix {mix}" for rps, mix in others])
        yield (
            "In this proportion of the models, one shared server carries the most with the mix"
            f" {best}: {most} requests/s in total. The server carries {with_others}."
        )

    def mixes(self, carried: pd.DataFrame) -> list[tuple[float, pd.Series]]:
        """Return the largest demand that one server carries with each mix, and the load line of the
        mix. The largest demand comes first.

        Each demand is the total of all models in requests/s. The models have the shares of this
        total that `_shares` returns. `carried` is the table operating_points. If the mixes belong
        to several scenarios, the list is empty.
        """
        shared = self.points[self.points["models"] == " + ".join(self.models)]
        if shared["scenario"].nunique() != 1:
            return []
        found, shares = [], self._shares(carried)
        for _, line in shared.iterrows():
            rows = carried[on_line(carried, line) & (carried["preset"] == line["preset"])]
            rates = rows.set_index("model")["lower_rps"]
            if set(rates.index) == set(self.models):
                found.append((float((rates / shares).min()), line))
        return sorted(found, key=lambda mix: mix[0], reverse=True)

    def _shares(self, carried: pd.DataFrame) -> pd.Series:
        """Return the share of each model in the total demand. The shares are proportional to the
        dedicated peaks, so that every model needs equally many dedicated servers."""
        dedicated = self.points[self.points["kind"] == "dedicated"]
        alone = carried.merge(dedicated[["scenario", "load_line", "preset"]])
        estimates = alone.groupby("model")["estimate_rps"].first()
        return estimates / estimates.sum()

    @property
    def shared_at_first(self) -> tuple[pd.Series, ...]:
        """The lowest ranges of the demand, as long as shared servers are reliably the cheapest."""
        return tuple(takewhile(saves, self.demand_ranges))

    @property
    def why_unknown(self) -> str:
        """Reason why the saving of shared servers is unknown; empty if the saving is known."""
        shared = [row for row in self.demand_ranges if row["shared"]]
        if any(pd.isna(row["least_saving"]) for row in shared):
            return "not every model has a measured dedicated server"
        is_open = bool(np.isinf(self.points["ci_high_rps"]).any())
        may_save = any(pd.isna(row["probability_of_saving"]) for row in shared)
        if is_open and may_save and not any(map(saves, shared)):
            return "the measurements give no upper limit for a capacity"
        return ""

    @property
    def behind(self) -> tuple[Link, ...]:
        return to_table("crossings"), *to_lines(self.points)


def saves(row: pd.Series) -> bool:
    """Return whether shared servers are reliably the cheapest in a range of the demand."""
    return bool(row["shared"] and row["reliable"])


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion for each group of two or more models that has no result of the preset
    smoke."""
    for each in all_questions(tables):
        if len(each.models) > 1:
            yield _conclusion(each, tables)


def all_questions(tables: Tables) -> Iterator[Asked]:
    """Yield the question for each model and for each group of models.

    Leave out models with a result of the preset smoke. If the study has a configured demand, yield
    nothing, since the module `servers_to_buy` answers the question.
    """
    if len(tables["fleets"]) or (tables["peaks"]["preset"] == "smoke").all():
        return
    for models, demand_ranges in tables["crossings"].groupby("models", sort=False):
        names = tuple(str(models).split(" + "))
        points = points_of(tables["peaks"], names)
        if not (points["preset"] == "smoke").any():
            yield Asked(names, tuple(row for _, row in demand_ranges.iterrows()), points)


def _conclusion(asked: Asked, tables: Tables) -> Conclusion:
    proportion = _proportion(asked.demand_ranges)
    kind, headline = _whether_to_share(asked)
    sentences = (
        *asked.sentences(tables),
        f"These results are valid if the models get {proportion} of the requests, in the order of"
        " the headline. For other proportions, use the section Your demand of the report, or the"
        " key demand of the configuration.",
    )
    rank = max((row["to_rps"] for row in asked.shared_at_first), default=0.0) / asked.most_rps
    return Conclusion(kind, headline, sentences, asked.behind, rank)


def _whether_to_share(asked: Asked) -> tuple[str, str]:
    """Return the kind and the headline of the conclusion."""
    who, rows, most = listed(asked.models), asked.demand_ranges, significant(asked.most_rps)
    shared = list(filter(saves, rows))
    at_first = asked.shared_at_first
    if asked.why_unknown:
        return "unknown", f"The saving of sharing {who} is not known: {asked.why_unknown}"
    if not shared:
        return "no", (
            f"{who} should use dedicated servers: sharing is not reliably cheaper at any demand"
            f" from {significant(rows[0]['from_rps'])} to {most} requests/s"
            f" (a load for {servers(rows[-1]['to_servers'])})"
        )
    if len(shared) == len(rows):
        return "yes", (
            f"{who} should share at every demand: sharing saves"
            f" {_range(shared)}{_probability(shared)} (examined up to {most} requests/s in total,"
            f" {_proportion(rows)})"
        )
    if at_first:
        until = significant(at_first[-1]["to_rps"])
        return "yes", (
            f"Up to {until} requests/s in total ({_proportion(rows)}), {who} should share servers:"
            f" sharing saves {_range(at_first)}{_probability(at_first)}"
        )
    saving = percent(max(row["most_saving"] for row in shared))
    return (
        "yes",
        f"{who} should share at some demands: sharing saves up to {saving}{_probability(shared)}",
    )


def _proportion(rows: Sequence[pd.Series]) -> str:
    """Return the proportion of the models as text, for example "76 % : 24 %"."""
    each = (part.rsplit(" ", 1)[1] for part in rows[0]["proportion"].split(", "))
    return " : ".join(each).replace("%", " %")


def _sentence(row: pd.Series, is_first: bool) -> str:
    first, last = significant(row["from_rps"]), significant(row["to_rps"])
    demand = f"Up to {last}" if is_first else first if first == last else f"{first} to {last}"
    count = from_to(row["from_servers"], row["to_servers"], "{:.0f}".format)
    price = from_to(row["from_usd_per_month"], row["to_usd_per_month"], usd)
    of = f"{row['server']} server{'' if count == '1' else 's'} for {price} a month"
    return f"{demand} requests/s in total: {_servers(row, count, of)}."


def _servers(row: pd.Series, count: str, of: str) -> str:
    if not row["shared"]:
        # For a single model, the question is which type of server is the cheapest.
        no_cheaper = "; sharing is no cheaper" if " + " in row["models"] else ""
        return f"{count} dedicated {of}{no_cheaper}"
    buy = f"{count} shared {of}" if count == "1" else f"{count} {of}, some of them shared"
    if pd.isna(row["least_saving"]):
        return buy
    saving = f"{_range([row])} less than dedicated servers"
    if row["reliable"]:
        return f"{buy}, {saving}{_probability([row])}"
    if pd.isna(row["probability_of_saving"]):
        return f"{buy}; it is uncertain whether sharing saves money"
    chance = percent(row["probability_of_saving"])
    at = "this load" if row["from_rps"] == row["to_rps"] else "some of these loads"
    return f"{buy}; at {at}, the probability that sharing saves money is only {chance}"


def from_to(first: float, last: float, write: Callable[[float], str]) -> str:
    """Return the first and the last value of a range as text, such as "1 to 2", or a single value
    if both are equal."""
    return write(first) if first == last else f"{write(first)} to {write(last)}"


def _range(demand_ranges: Sequence[pd.Series]) -> str:
    low = percent(min(row["least_saving"] for row in demand_ranges))
    high = percent(max(row["most_saving"] for row in demand_ranges))
    return low if low == high else f"{low} to {high}"


def _probability(demand_ranges: Sequence[pd.Series]) -> str:
    """Return the lowest probability of a saving as text; empty if the probability is unknown."""
    chances = [row["probability_of_saving"] for row in demand_ranges]
    return "" if any(pd.isna(each) for each in chances) else f" ({sure(min(chances))})"
