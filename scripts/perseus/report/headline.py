"""Write the headline of the report: the conclusion of a study in one sentence of at most MAX_WORDS
words, with its certainty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from perseus.report.conclusions import recommended
from perseus.report.conclusions.catalogue import COST
from perseus.report.conclusions.cheapest import costs_of_models, in_precision
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
from perseus.report.headlines_of_kinds import HEADLINES, finding, interval_text, widest, within
from perseus.report.numbers import bounds, likely, percent, significant, sure, usd
from perseus.results.fleets.break_even import RELIABLE
from perseus.results.fleets.operating_points import LOWER
from perseus.results.fleets.plans import DEDICATED, SHARING
from perseus.results.tables.recommendations import SURE as CLEAR

MAX_WORDS: Final = 20
"""A headline has at most this many words. A word contains at least one letter or digit."""

BY_CAPACITIES: Final = f"each capacity {percent(1 - LOWER)} sure"
"""Certainty in the headline if the probability of a saving is unknown. The plan uses lower limits
of the capacities. Each capacity exceeds its lower limit with this probability."""

QUESTIONS: Final = tuple(kind for kind in HEADLINES if kind != "aa")
"""Kinds of experiments whose result is a better headline than the capacity of one server."""


@dataclass(frozen=True)
class Headline:
    """The headline of a report.

    `kind` is "yes", "perhaps", "no", "unclear" or "unknown", as for a Conclusion. `figure` is the
    name of the figure that shows the numbers of the headline. If `figure` is empty, the figure
    `frontier` or `peaks` shows these numbers.
    """

    kind: str
    text: str
    figure: str = ""


def headline(tables: Tables) -> Headline:
    """Return the headline of a study: the first conclusion that the results allow.

    The function tries the conclusions in this order: the servers for the demand, sharing at growing
    demand, the recommended setting of a grid, sharing on full servers, the cheapest server of a
    model, experiments other than searches, the capacity of one server, and the noise of the host.
    The capacity of one server comes late, because most studies measure it to answer another
    question.
    """
    if len(tables["peaks"]) and (tables["peaks"]["preset"] == "smoke").all():
        return Headline(
            "unknown",
            "The preset smoke only shows that Perseus works; it is too short for a result.",
        )
    found = (
        _fleet(tables) or _over_demand(tables) or _recommended(tables) or _full_servers(tables)
        or _cheapest(tables) or _experiment(tables, QUESTIONS) or _one_server(tables)
        or _experiment(tables)
    )  # fmt: skip
    return found or Headline(
        "unknown", "No search found the largest load of a server: see Failed measurements."
    )


def word_count(text: str) -> int:
    return sum(any(map(str.isalnum, token)) for token in text.split())


def top_fleets(fleets: pd.DataFrame) -> dict[str, pd.Series]:
    """Return, by strategy, the row of the table fleets for the highest level of the demand."""
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
            enough = f"({_both(row['probability_enough'], chance)})"
            kind = kind if chance >= RELIABLE else "perhaps"
        return Headline(kind, f"{buy}, {cheaper} {enough}.")
    if not is_saving_known(tables, row):
        return Headline(kind, f"{buy} {enough}; the saving of sharing is not known.")
    return Headline(kind, f"{buy} {enough}; sharing is no cheaper than dedicated servers.")


def _both(of_capacity: float, of_saving: float) -> str:
    """Return a text with two probabilities: that the servers suffice, and that sharing saves."""
    enough, saving = sure(of_capacity), sure(of_saving)
    if enough == saving:
        return f"{enough} to suffice and to save"
    return f"{enough} to suffice, {likely(of_saving)} to save"


def _over_demand(tables: Tables) -> Headline | None:
    known = known_groups(tables)
    if not known:
        return None
    certainty = _certainty(chance_of_saving(known))
    if len(known) > 1:
        gain = sum(any(map(saves, each.demand_ranges)) for each in known)
        cost = "costs" if gain == 1 else "cost"
        text = (
            f"{gain} of {len(known)} groups of models {cost} less on shared servers at some demand"
        )
        return Headline("yes" if gain else "no", f"{text} ({certainty}).")
    (asked,) = known
    shared, at_first = _shared(asked), asked.shared_at_first
    most = significant(asked.most_rps)
    if not shared:
        return Headline(
            "no",
            "Use dedicated servers: sharing is not reliably cheaper at any demand up to"
            f" {most} requests/s ({certainty}).",
        )
    rows = at_first or shared
    saving = saving_range(
        min(row["least_saving"] for row in rows), max(row["most_saving"] for row in rows)
    )
    where = "At some demands"
    if at_first:
        where = f"Up to {significant(at_first[-1]['to_rps'])} requests/s {_split(asked)}"
    cost = f"shared servers cost {saving} less than dedicated ones ({certainty})."
    return Headline("yes", f"{where}, {cost}")


def _split(asked: Asked) -> str:
    """Return a text such as "(69 % a)": the name of the first of two models, and its share of the
    requests. For more than two models, return "in total"."""
    parts = str(asked.demand_ranges[0]["proportion"]).split(", ")
    if len(parts) != 2:
        return "in total"
    name, share = parts[0].rsplit(" ", 1)
    return f"({share.removesuffix('%')} % {name})"


def _shared(asked: Asked) -> list[pd.Series]:
    return list(filter(saves, asked.demand_ranges))


def known_groups(tables: Tables) -> list[Asked]:
    """Return the groups of two or more models whose saving of sharing is known at each demand."""
    groups = [each for each in all_questions(tables) if len(each.models) > 1]
    return [each for each in groups if not each.why_unknown]


def chance_of_saving(known: Sequence[Asked]) -> float:
    """Return the lowest probability of a saving, among all demands at which the headline states a
    saving. If one of the probabilities is unknown, return NaN."""
    rows = [row for each in known for row in _shared(each)]
    if len(known) == 1:
        rows = list(known[0].shared_at_first) or rows
    return float(np.min([row["probability_of_saving"] for row in rows])) if rows else np.nan


def _certainty(chance: float) -> str:
    return BY_CAPACITIES if np.isnan(chance) else sure(chance)


def best_saving(tables: Tables) -> pd.Series | None:
    """Return the row of the table savings with the largest saving on full servers. Mixes of copies
    of one model do not count. If no saving is known, return None."""
    savings = tables["savings"]
    several = savings["models"].map(lambda names: len(set(names.split(" + "))) > 1)
    known = savings[several.astype(bool) & savings["saving"].notna()]
    return None if known.empty else known.sort_values("saving").iloc[-1]


def cost_bounds(row: pd.Series) -> str:
    """Return the interval of the additional cost of sharing as text. The additional cost is the
    negative saving. The interval is corrected for the choice of the best mix."""
    low, high = float(row["ci_simultaneous_low"]), float(row["ci_simultaneous_high"])
    return bounds(-np.inf if high >= 1 else -high, -low, percent)  # no saving exceeds 1


def saving_bounds(row: pd.Series) -> str:
    """Return the interval of a saving as text. The interval is corrected for the choice of the best
    mix. An upper end of 1 is left out, because no saving exceeds 1 anyway."""
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


def _recommended(tables: Tables) -> Headline | None:
    rows = tables["recommendations"]
    rows = rows[rows["preset"] != "smoke"]
    if rows.empty:
        return None
    if len(rows) > 1:
        clear = (rows["verdict"] == "clear").sum()
        certainty = f"(at least {percent(CLEAR)} sure to be cheapest)"
        text = f"{clear} of {len(rows)} models and mixes have a clear best setting {certainty}."
        return Headline("yes" if clear == len(rows) else "unclear", text, "grid")
    row = rows.iloc[0]
    kind = recommended.KINDS[row["verdict"]]
    if pd.isna(row["setting"]):
        text = f"{row['mix']}: none of {row['settings']:.0f} settings can be recommended."
        return Headline(kind, text, "grid")
    chance = row["probability_cheapest"]
    certainty = f"{sure(chance)} to be cheapest" if pd.notna(chance) else _usd_interval(row)
    cost = f"{usd(row[COST])} per million inferences ({certainty})"
    text = f"{row['mix']}: use {row['setting']}, {cost}."
    if word_count(text) > MAX_WORDS:
        text = f"Use the best of {row['settings']:.0f} settings, {cost}."
    return Headline(kind, text, "grid")


def _cheapest(tables: Tables) -> Headline | None:
    """Return the headline on the cheapest servers, for models that were measured on several
    servers."""
    models = list(costs_of_models(tables["costs"]))
    if not models:
        return None
    if len(models) == 1:
        (rows,) = models
        best = rows.iloc[0]
        cheapest = f"{best['mix']} is cheapest on {best['server']}{in_precision(rows)}"
        text = f"{cheapest}: {usd(best[COST])} per million inferences ({_usd_interval(best)})."
        return Headline("yes" if _is_apart(rows) else "perhaps", text, "servers")
    ((server, count),) = Counter(rows["server"].iloc[0] for rows in models).most_common(1)
    apart = sum(_is_apart(rows) for rows in models if rows["server"].iloc[0] == server)
    text = f"{server} is the cheapest server of {count} of {len(models)} models"
    kind = "yes" if apart == len(models) else "perhaps"
    return Headline(kind, f"{text}, {apart} with separate 95 % intervals.", "servers")


def _usd_interval(row: pd.Series) -> str:
    return interval_text(row["ci_low_usd"] or -np.inf, row["ci_high_usd"], usd)


def _is_apart(costs: pd.DataFrame) -> bool:
    """Return whether the first server is clearly the cheapest: its cost interval lies below the
    cost intervals of all other servers."""
    best = costs.iloc[0]
    others = costs[costs["server"] != best["server"]]
    return bool((best["ci_high_usd"] < others["ci_low_usd"]).all())


def _one_server(tables: Tables) -> Headline | None:
    peaks = tables["peaks"]
    known = peaks[peaks["estimate_rps"].notna()]
    if known.empty:
        return None
    if len(known) > 1:
        low, high = (significant(known["estimate_rps"].agg(end)) for end in ("min", "max"))
        text = f"{len(known)} searches found limits of {low} to {high} requests/s per server"
        width = widest(known["estimate_rps"], known["ci_low_rps"], known["ci_high_rps"])
        return Headline("unclear", f"{text} ({within(width)}).")
    row = known.iloc[0]
    interval = interval_text(row["ci_low_rps"], row["ci_high_rps"], significant)
    carries = f"One {row['server']} server carries {significant(row['estimate_rps'])} requests/s"
    return Headline("unclear", f"{carries} within the SLA ({interval}).")


def _experiment(tables: Tables, experiments: Collection[str] = ()) -> Headline | None:
    """Return the headline on an experiment other than a search.

    `experiments` names the permitted kinds of experiments, or is empty if all kinds are permitted.
    If `experiments` is not empty and no result of these kinds is known, return None.
    """
    found = finding(tables, experiments)
    if found is None or (experiments and found.kind == "unknown"):
        return None
    return Headline(found.kind, found.text, found.experiment)
