"""Make the key figures (at most five cards) below the headline of the report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
import pandas as pd

from perseus.report.conclusions.catalogue import COST, first_front, short_name
from perseus.report.conclusions.conclusion import Tables
from perseus.report.conclusions.over_demand import all_questions, from_to, saves
from perseus.report.conclusions.servers_to_buy import is_saving_known, may_save_less, servers
from perseus.report.headline import (
    best_saving,
    cost_bounds,
    saving_bounds,
    saving_range,
    top_fleets,
)
from perseus.report.links import on_line
from perseus.report.numbers import bounds, percent, significant, sure, usd
from perseus.results.fleets.plans import SHARING

RATE: Final = "requests/s"
MAX_CARDS: Final = 5
LEVEL_STEP: Final = 5
"""The levels of accuracy on the cards of a catalogue are multiples of this number, in percent."""
MAX_ALONE: Final = 2
"""Each dedicated peak has a card of its own if there are at most this many dedicated peaks."""


@dataclass(frozen=True)
class Card:
    """One key figure: `value` is in large letters, and `label` and `note` are in small letters."""

    label: str
    value: str
    unit: str = ""
    note: str = ""


def cards(tables: Tables, cells: int) -> list[Card]:
    """Return the key figures that are known: capacities of servers, the saving of sharing, the
    cost, the networks of a catalogue, and the number of measured cells."""
    found = [*_alone(tables), *_together(tables), *_money(tables)] or [*_networks(tables)]
    presets = ", ".join(dict.fromkeys(tables["peaks"]["preset"]))
    evidence = Card("Evidence", str(cells), *_runs(cells, presets))
    return list(islice([*found, evidence], MAX_CARDS))


def _runs(count: int, presets: str) -> tuple[str, str]:
    return "run" if count == 1 else "runs", f"preset {presets}" if presets else ""


def _alone(tables: Tables) -> Iterator[Card]:
    peaks, tenants = tables["peaks"], tables["tenants"]
    known = peaks[(peaks["kind"] == "dedicated") & peaks["estimate_rps"].notna()]
    if len(known) <= MAX_ALONE:
        for _, row in known.iterrows():
            slas = tenants[on_line(tenants, row)].apply(_sla, axis=1).unique()
            yield _rate(f"{row['mix']} alone{slas[0] if len(slas) == 1 else ''}", row)
    else:
        ends = known["estimate_rps"].min(), known["estimate_rps"].max()
        value = f"{significant(ends[0])} to {significant(ends[1])}"
        yield Card("Models alone", value, RATE, f"{known['models'].nunique()} models")


def _sla(tenant: pd.Series) -> str:
    return f", p{tenant['sla_percentile']:g} within {tenant['sla_ms']:g} ms"


def _together(tables: Tables) -> Iterator[Card]:
    """Yield a card with the peak of one mix. If the headline states a proportion of the models, the
    card shows the mix that carries the most requests/s in that proportion. If the headline states
    no proportion, the card shows the mix with the highest sharing ratio."""
    groups = [each for each in all_questions(tables) if len(each.models) > 1]
    if len(groups) == 1 and (mixes := groups[0].mixes(tables["operating_points"])):
        _, row = mixes[0]
        yield _rate(f"Together, {row['mix']}", row)
        return
    peaks = tables["peaks"]
    known = peaks[(peaks["kind"] != "dedicated") & peaks["estimate_rps"].notna()]
    if len(known):
        row = known.sort_values(["sharing_ratio", "estimate_rps"], na_position="first").iloc[-1]
        yield _rate(f"Together, {row['mix']}", row)


def _money(tables: Tables) -> Iterator[Card]:
    """Yield the cards about cost.

    If the study has a demand, the costs are for this demand. If the study has no demand, and
    sharing saves money in the lowest range of demands, the costs are for this range. In all other
    studies, the costs are for full servers.
    """
    if len(tables["fleets"]):
        yield from _of_demand(tables, top_fleets(tables["fleets"])[SHARING])
        return
    at_first = [each.stretches[0] for each in all_questions(tables) if len(each.models) > 1]
    shared = [row for row in at_first if saves(row) and pd.notna(row["least_saving"])]
    best = best_saving(tables)
    if len(at_first) == len(shared) == 1:
        row = shared[0]
        until = f"up to {significant(row['to_rps'])} requests/s"
        if best is None:
            saving = saving_range(row["least_saving"], row["most_saving"])
            yield Card("Saving of sharing", saving, note=f"{until}{_certainty(row)}")
        else:  # the headline already states the saving below this demand
            yield _on_full_servers(best)
        count = from_to(row["from_servers"], row["to_servers"], "{:.0f}".format)
        price = from_to(row["from_usd_per_month"], row["to_usd_per_month"], usd)
        note = f"{count} server{'' if count == '1' else 's'}, {until}"
        yield Card("USD a month", price, note=note)
    elif best is not None:
        yield _on_full_servers(best)


def _on_full_servers(best: pd.Series) -> Card:
    if best["saving"] >= 0:
        note = f"{saving_bounds(best)} (95 %)"
        return Card(f"Saving on full servers{_of_mix(best)}", percent(best["saving"]), note=note)
    note = f"{cost_bounds(best)} (95 %)"
    label = f"Extra cost of sharing on full servers{_of_mix(best)}"
    return Card(label, percent(-best["saving"]), note=note)


def _of_mix(saving: pd.Series) -> str:
    return f", mix {saving['weights']}" if saving["weights"] else ""


def _of_demand(tables: Tables, row: pd.Series) -> Iterator[Card]:
    if pd.isna(row["servers"]):
        return
    if pd.notna(row["saving"]) and is_saving_known(tables, row):
        less = "may be smaller" if may_save_less(tables, row) else ""
        certainty = _certainty(row).removeprefix(", ") or less
        yield Card("Saving of sharing", percent(row["saving"]), note=certainty)
    enough = f"{servers(row['servers'])}, {sure(float(row['probability_enough']))} to suffice"
    yield Card("USD a month", usd(row["usd_per_month"]), note=enough)


def _certainty(row: pd.Series) -> str:
    chance = row["probability_of_saving"]
    return "" if pd.isna(chance) else f", {sure(float(chance))}"


def _networks(tables: Tables) -> Iterator[Card]:
    """Yield the cards of a catalogue: the cheapest network, the cheapest networks with some levels
    of accuracy, and the most accurate network on the Pareto front."""
    front = first_front(tables["catalogue"])
    if front.empty:
        return
    labels = {}
    top = math.ceil(front["accuracy"].iloc[-1] / LEVEL_STEP) * LEVEL_STEP
    for level in (top - 2 * LEVEL_STEP, top - LEVEL_STEP):
        labels[(front["accuracy"] >= level).idxmax()] = f"Cheapest with at least {level} % accuracy"
    labels[front.index[-1]] = "Most accurate on the Pareto front"
    labels[front.index[0]] = "Cheapest on the Pareto front"
    for index, row in front.iterrows():
        if index in labels:
            yield Card(labels[index], usd(row[COST]), "per million images", short_name(row))


def _rate(label: str, row: pd.Series) -> Card:
    """Return a card with the estimate of a load line and, if known, its interval."""
    low, high = row["ci_low_rps"], row["ci_high_rps"]
    is_known = pd.notna(low) and pd.notna(high)
    interval = bounds(low or -np.inf, high, significant) if is_known else ""
    note = f"{interval} (95 %)" if interval else ""
    return Card(label, significant(row["estimate_rps"]), RATE, note)
