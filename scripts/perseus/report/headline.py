"""Write the conclusion of a study in one sentence of at most MAX_WORDS words, with its
probability."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from perseus.report.conclusions import conclusions
from perseus.report.conclusions.conclusion import Tables
from perseus.report.conclusions.over_demand import Asked, all_questions, saves
from perseus.report.conclusions.servers_to_buy import (
    SURE,
    infeasible_models,
    is_doubtful,
    is_saving_known,
    may_save_less,
    servers,
)
from perseus.report.conclusions.sharing import at_most
from perseus.report.numbers import bounds, percent, significant, sure, usd
from perseus.results.fleets.break_even import RELIABLE
from perseus.results.fleets.plans import DEDICATED, SHARING

MAX_WORDS: Final = 20
"""A headline has at most this many words. Only texts with a letter or a digit count as words."""

BRACKETS: Final = re.compile(r" \([^)]*\)")


@dataclass(frozen=True)
class Headline:
    """The headline of a report. `kind` is "yes", "perhaps", "no", "unclear" or "unknown", as for a
    Conclusion."""

    kind: str
    text: str


def headline(tables: Tables) -> Headline:
    """Return the headline of a study: the first conclusion that the results allow.

    The function tries the conclusions in this order: the servers for the demand, sharing at growing
    demand, sharing on full servers, the capacity of one server, and other experiments.
    """
    if len(tables["peaks"]) and (tables["peaks"]["preset"] == "smoke").all():
        return Headline(
            "unknown",
            "The preset smoke only shows that Perseus works; it is too short for a result.",
        )
    found = (
        _fleet(tables) or _over_demand(tables) or _full_servers(tables) or _one_server(tables)
        or _experiment(tables)
    )  # fmt: skip
    return found or Headline(
        "unknown", "No search found the largest load of a server: see Failed measurements."
    )


def word_count(text: str) -> int:
    return sum(any(map(str.isalnum, token)) for token in text.split())


def top_fleets(fleets: pd.DataFrame) -> dict[str, pd.Series]:
    """Return the row of the table fleets at the highest level of the demand, for each strategy."""
    top = fleets[fleets["level"] == fleets["level"].iloc[-1]]
    return {str(row["strategy"]): row for _, row in top.iterrows()}


def saving_range(low: float, high: float) -> str:
    ends = percent(low), percent(high)
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _fleet(tables: Tables) -> Headline | None:
    if not len(tables["fleets"]):
        return None
    rows = top_fleets(tables["fleets"])
    row, alone = rows[SHARING], rows[DEDICATED]
    if pd.isna(row["servers"]):
        if infeasible_models(tables, row):
            return Headline("no", "No combination of the measured servers carries the demand.")
        return Headline("unknown", "The servers that the demand needs are not known.")
    if row["servers"] == 0:
        return Headline("no", "The demand is zero: no server is needed.")
    buy = f"Buy {servers(row['servers'])} for {usd(row['usd_per_month'])} a month"
    enough = f"({sure(row['probability_enough'])} to suffice)"
    is_sure = row["probability_enough"] >= SURE and not is_doubtful(tables, row)
    kind = "yes" if is_sure else "perhaps"
    if pd.isna(alone["servers"]):
        return Headline(kind, f"{buy} {enough}; the cost of dedicated servers is not known.")
    if row["saving"] > 1e-9:
        cheaper = f"{percent(row['saving'])} less than dedicated servers"
        chance = row["probability_of_saving"]
        if may_save_less(tables, row):
            less = f"the saving of {percent(row['saving'])} may be smaller"
            return Headline("perhaps", f"{buy} {enough}; {less}.")
        if pd.notna(chance):
            enough = f"{enough[:-1]}, {sure(chance).removesuffix(' sure')} to save)"
            kind = kind if chance >= RELIABLE else "perhaps"
        return Headline(kind, f"{buy}, {cheaper} {enough}.")
    if not is_saving_known(tables, row):
        return Headline(kind, f"{buy} {enough}; the saving of sharing is not known.")
    return Headline(kind, f"{buy} {enough}; sharing is no cheaper than dedicated servers.")


def _over_demand(tables: Tables) -> Headline | None:
    groups = [each for each in all_questions(tables) if len(each.models) > 1]
    known = [each for each in groups if not each.why_unknown]
    if not known:
        return None
    if len(known) > 1:
        gain = sum(any(map(saves, each.stretches)) for each in known)
        cost = "costs" if gain == 1 else "cost"
        text = (
            f"{gain} of {len(known)} groups of models {cost} less on shared servers at some demand"
        )
        chances = [row["probability_of_saving"] for each in known for row in _shared(each)]
        return Headline("yes" if gain else "no", f"{text}{_least(chances)}.")
    (asked,) = known
    shared, at_first = _shared(asked), asked.shared_at_first
    most = significant(asked.most_rps)
    if not shared:
        return Headline(
            "no",
            "Use dedicated servers: sharing is not reliably cheaper at any demand up to"
            f" {most} requests/s.",
        )
    rows = at_first or shared
    saving = saving_range(
        min(row["least_saving"] for row in rows), max(row["most_saving"] for row in rows)
    )
    certainty = _least([row["probability_of_saving"] for row in rows])
    where = "At some demands"
    if at_first:
        where = f"Up to {significant(at_first[-1]['to_rps'])} requests/s {_split(asked)}"
    cost = f"shared servers cost {saving} less than dedicated ones{certainty}."
    return Headline("yes", f"{where}, {cost}")


def _split(asked: Asked) -> str:
    """For two models, return the share of the requests that the first model gets, for example
    "(69 % a)". For more than two models, return "in total"."""
    parts = str(asked.stretches[0]["proportion"]).split(", ")
    if len(parts) != 2:
        return "in total"
    name, share = parts[0].rsplit(" ", 1)
    return f"({share.removesuffix('%')} % {name})"


def _shared(asked: Asked) -> list[pd.Series]:
    return list(filter(saves, asked.stretches))


def _least(chances: list[float]) -> str:
    """Return the lowest of the probabilities as text in brackets; empty if a probability is
    unknown."""
    least = np.min(chances) if chances else np.nan
    return "" if np.isnan(least) else f" ({sure(float(least))})"


def best_saving(tables: Tables) -> pd.Series | None:
    """Return the row of the table savings with the largest saving of different models on full
    servers; None if no saving is known."""
    savings = tables["savings"]
    several = savings["models"].map(lambda names: len(set(names.split(" + "))) > 1)
    known = savings[several.astype(bool) & savings["saving"].notna()]
    return None if known.empty else known.sort_values("saving").iloc[-1]


def cost_bounds(row: pd.Series) -> str:
    """Return the interval of the additional cost of sharing (the negative saving) as text,
    corrected for the choice of the best mix."""
    low, high = float(row["ci_simultaneous_low"]), float(row["ci_simultaneous_high"])
    return bounds(-np.inf if high >= 1 else -high, -low, percent)  # no saving exceeds 1


def saving_bounds(row: pd.Series) -> str:
    """Return the interval of a saving as text, corrected for the choice of the best mix. If the
    upper end is 1, the text states no upper end, because no saving exceeds 1 anyway."""
    low, high = row["ci_simultaneous_low"], row["ci_simultaneous_high"]
    return bounds(float(low), np.inf if high >= 1 else float(high), percent)


def _full_servers(tables: Tables) -> Headline | None:
    row = best_saving(tables)
    if row is None:
        return None
    low, high = row["ci_simultaneous_low"], row["ci_simultaneous_high"]
    if low > 0:
        text = f"On full servers, sharing saves {percent(row['saving'])} ({saving_bounds(row)})."
        return Headline("yes", text)
    if high < 0:
        ends = f"{percent(-high)} to {percent(-low)}" if np.isfinite(low) else "no upper bound"
        more = f"{percent(-row['saving'])} more than dedicated servers"
        text = f"On full servers, sharing costs {more} ({ends})."
        return Headline("no", text)
    if limits := at_most(row.to_frame().T):
        return Headline("unclear", f"On full servers, sharing {limits}.")
    text = "The data do not show whether sharing saves money on full servers"
    return Headline("unclear", f"{text} (saving: {saving_bounds(row)}).")


def _one_server(tables: Tables) -> Headline | None:
    peaks = tables["peaks"]
    known = peaks[peaks["estimate_rps"].notna()]
    if known.empty:
        return None
    if len(known) > 1:
        low, high = (significant(known["estimate_rps"].agg(end)) for end in ("min", "max"))
        text = f"{len(known)} searches found limits of {low} to {high} requests/s per server"
        return Headline("unclear", f"{text}, each with its interval below.")
    row = known.iloc[0]
    interval = bounds(row["ci_low_rps"], row["ci_high_rps"], significant)
    carries = f"One {row['server']} server carries {significant(row['estimate_rps'])} requests/s"
    return Headline("unclear", f"{carries} within the SLA (95 % interval: {interval}).")


def _experiment(tables: Tables) -> Headline | None:
    """Return the headline of a study without peaks: the first conclusion of at most MAX_WORDS
    words.

    If a conclusion has more than MAX_WORDS words, the function tries the conclusion without the
    texts in brackets.
    """
    found = list(conclusions(tables))
    for conclusion in found:
        for text in (conclusion.headline, BRACKETS.sub("", conclusion.headline)):
            if word_count(text) <= MAX_WORDS:
                return Headline(conclusion.kind, f"{text}.")
    text = "See the conclusions below, each with its evidence."
    return Headline("unclear", text) if found else None
