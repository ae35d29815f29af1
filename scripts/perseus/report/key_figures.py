"""Make the key figures (at most five cards) below the headline of the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pandas as pd

from perseus.report.card import Card
from perseus.report.cards_of_kinds import RATE, cards_of_kinds, outcomes
from perseus.report.conclusions.conclusion import Tables
from perseus.report.conclusions.over_demand import all_questions, from_to
from perseus.report.conclusions.servers_to_buy import is_saving_known, may_save_less, servers
from perseus.report.headline import (
    COST,
    best_saving,
    chance_of_saving,
    cost_bounds,
    headline,
    known_groups,
    saving_bounds,
    saving_range,
    top_fleets,
)
from perseus.report.headlines_of_kinds import finding, widest, within
from perseus.report.links import on_line
from perseus.report.numbers import bounds, counted, likely, percent, significant, sure, usd
from perseus.results.fleets.operating_points import LOWER
from perseus.results.fleets.plans import HOURS_PER_MONTH, SHARING
from perseus.study.experiments import OTHER_KINDS

MAX_CARDS: Final = 5
USD: Final = "USD a month"
MAX_ALONE: Final = 2
"""The card of the dedicated peaks states each peak if there are at most this many dedicated
peaks."""


def cards(tables: Tables, cells: int) -> list[Card]:
    """Return three to five key figures: capacities of servers, the saving of sharing, the cost, and
    how certain these figures are. `cells` is the number of measured cells.

    If the headline is about an experiment other than a search, return the key figures of this
    experiment.
    """
    figure = headline(tables).figure
    if figure in OTHER_KINDS and (found := finding(tables, (figure,))):
        return cards_of_kinds(found, MAX_CARDS)
    known = tables["peaks"][tables["peaks"]["estimate_rps"].notna()]
    if known.empty:
        shown = list(outcomes(tables["peaks"], "load lines"))
    else:
        shown = [*_alone(tables), *_together(tables), *(_money(tables) or _certified(known))]
    if not any(card.label == USD for card in shown):
        shown += _price(tables)
    presets = ", ".join(dict.fromkeys(tables["peaks"]["preset"]))
    is_once = (tables["peaks"]["repeats"] == 1).all()
    evidence = "each search ran once" if is_once else counted(cells, "run")
    evidence += f", preset {presets}" if presets else ""
    return [*shown[: MAX_CARDS - 1], _how_sure(tables, known, evidence)]


def _how_sure(tables: Tables, known: pd.DataFrame, evidence: str) -> Card:
    if known.empty or (known["preset"] == "smoke").all():
        return Card("How sure", "no result", note=evidence)
    if chance := _chance(tables):
        value, what = chance
        return Card("How sure", value, note=f"probability {what}; {evidence}")
    width = widest(known["estimate_rps"], known["ci_low_rps"], known["ci_high_rps"])
    if np.isfinite(width):
        value = f"\N{PLUS-MINUS SIGN}{percent(width)}"
        return Card("How sure", value, note=f"95 % interval; {evidence}")
    return Card("How sure", "no bound", note=f"{within(width)}; {evidence}")


def _chance(tables: Tables) -> tuple[str, str] | None:
    """Return a probability and the event with this probability, as texts. The event is the
    statement of the headline. If the headline has no probability, return None."""
    if len(tables["fleets"]):
        row = top_fleets(tables["fleets"])[SHARING]
        enough, saving = row["probability_enough"], row["probability_of_saving"]
        if pd.isna(row["servers"]):
            return None
        also = "" if pd.isna(saving) else f"; {likely(saving)} that sharing saves money"
        return likely(enough), f"that the servers suffice{also}"
    if known := known_groups(tables):
        chance = chance_of_saving(known)
        if np.isnan(chance):
            return percent(1 - LOWER), "that each capacity exceeds its lower limit"
        return likely(chance), "that sharing saves money"
    settings = tables["recommendations"]["probability_cheapest"]
    if len(settings):
        if len(settings) > 1 or settings.isna().any():
            return None
        return likely(settings.iloc[0]), "that no setting is cheaper"
    best = best_saving(tables)
    if best is None or pd.isna(best["probability_of_saving"]):
        return None
    chance = float(best["probability_of_saving"])
    if best["saving"] >= 0:
        return likely(chance), "that sharing saves money on full servers"
    return likely(1 - chance), "that sharing costs more on full servers"


def _alone(tables: Tables) -> Iterator[Card]:
    """Yield a card with the dedicated peaks of all models."""
    peaks, tenants = tables["peaks"], tables["tenants"]
    known = peaks[(peaks["kind"] == "dedicated") & peaks["estimate_rps"].notna()]
    rows, models = [row for _, row in known.iterrows()], known["models"].nunique()
    if len(rows) == 1:
        slas = tenants[on_line(tenants, rows[0])].apply(_sla, axis=1).unique()
        yield _rate(f"{rows[0]['mix']} alone{slas[0] if len(slas) == 1 else ''}", rows)
    elif len(rows) == models == MAX_ALONE:
        yield _rate(f"{' and '.join(known['mix'])} alone", rows)
    elif rows:
        low, high = (significant(known["estimate_rps"].agg(end)) for end in ("min", "max"))
        label = "Models alone" if models > 1 else f"{rows[0]['models']} alone"
        servers_text = counted(known["server"].nunique(), "server")
        note = f"{len(rows)} peaks of {counted(models, 'model')} on {servers_text}"
        yield Card(label, f"{low} to {high}", RATE, note)


def _sla(tenant: pd.Series) -> str:
    return f", p{tenant['sla_percentile']:g} within {tenant['sla_ms']:g} ms"


def _together(tables: Tables) -> Iterator[Card]:
    """Yield a card with the peak of the mix that has the highest sharing ratio.

    If the headline states a proportion of the models, the card is instead about the mix that
    carries the most requests/s in this proportion.
    """
    groups = [each for each in all_questions(tables) if len(each.models) > 1]
    if len(groups) == 1 and (mixes := groups[0].mixes(tables["operating_points"])):
        _, row = mixes[0]
        yield _rate(f"Together, {row['mix']}", [row])
        return
    peaks = tables["peaks"]
    known = peaks[(peaks["kind"] != "dedicated") & peaks["estimate_rps"].notna()]
    if len(known):
        row = known.sort_values(["sharing_ratio", "estimate_rps"], na_position="first").iloc[-1]
        yield _rate(f"Together, {row['mix']}", [row])


def _money(tables: Tables) -> list[Card]:
    """Return the cards about the saving of sharing and the cost of servers.

    If the study has a demand, the cards are about the servers for this demand. If the study has no
    demand, but sharing saves money at the lowest demands, the cards are about these demands. In all
    other studies, one card is about full servers.
    """
    if len(tables["fleets"]):
        return list(_of_demand(tables, top_fleets(tables["fleets"])[SHARING]))
    known, best = known_groups(tables), best_saving(tables)
    if len(known) == 1 and (rows := known[0].shared_at_first):
        until = f"up to {significant(rows[-1]['to_rps'])} requests/s"
        saving = saving_range(
            min(row["least_saving"] for row in rows), max(row["most_saving"] for row in rows)
        )
        full = "" if best is None else f"; {_of_full_servers(best)}"
        saved = Card("Saving of sharing", saving, note=f"{until}{full}")
        number = from_to(rows[0]["from_servers"], rows[-1]["to_servers"], "{:.0f}".format)
        price = from_to(rows[0]["from_usd_per_month"], rows[-1]["to_usd_per_month"], usd)
        note = f"{counted(number, 'server')}, {until}"
        return [saved, Card(USD, price, note=note)]
    return [] if best is None else [_on_full_servers(best)]


def _of_full_servers(best: pd.Series) -> str:
    if best["saving"] >= 0:
        return f"{percent(best['saving'])} on full servers"
    return f"on full servers, sharing costs {percent(-best['saving'])} more"


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
        chance, less = row["probability_of_saving"], may_save_less(tables, row)
        doubt = "the saving may be smaller" if less else ""
        certainty = doubt if pd.isna(chance) else sure(chance)
        yield Card("Saving of sharing", percent(row["saving"]), note=certainty)
    enough = f"{servers(row['servers'])}, {sure(float(row['probability_enough']))} to suffice"
    yield Card(USD, usd(row["usd_per_month"]), note=enough)


def _certified(known: pd.DataFrame) -> list[Card]:
    """Return a card with the certified rates of the load lines with an estimate."""
    rates = known["certified_rps"].dropna()
    if rates.empty:
        return [Card("Certified rate", "none", note="no tested rate was certified")]
    value = " to ".join(dict.fromkeys(significant(rates.agg(end)) for end in ("min", "max")))
    if len(known) == 1:
        return [Card("Certified rate", value, RATE, "in production, send at most this rate")]
    return [Card("Certified rates", value, RATE, f"for {len(rates)} of {len(known)} peaks")]


def _price(tables: Tables) -> Iterator[Card]:
    """Yield a card with the monthly price of the server that has the lowest cost per inference."""
    costs = tables["costs"]
    known = costs[costs[COST].notna() & costs["pricing"].isin(costs["pricing"].head(1))]
    if len(known):
        row = known.iloc[int(known[COST].argmin())]
        note = f"one {row['server']} server, {usd(row[COST])} per million inferences"
        yield Card(USD, usd(HOURS_PER_MONTH * row["usd_per_hour"]), note=note)


def _rate(label: str, rows: Sequence[pd.Series]) -> Card:
    """Return a card with the estimates of load lines and, if known, their intervals."""
    values = " and ".join(significant(row["estimate_rps"]) for row in rows)
    ends = [(row["ci_low_rps"] or -np.inf, row["ci_high_rps"]) for row in rows]
    intervals = " and ".join(bounds(*each, significant) for each in ends)
    return Card(label, values, RATE, "" if pd.isna(ends).any() else f"{intervals} (95 %)")
