"""What to buy, in words: the fleet for the study's demand or, without one, what is the cheapest at
which demand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

import numpy as np
import pandas as pd

from perseus.report.answers.answer import Answer, Tables
from perseus.report.answers.sharing import QUICK, beside_others, loaded, not_certified
from perseus.report.links import to_lines, to_table
from perseus.report.numbers import bounds, chance, listed, percent, percent_below, significant
from perseus.results.fleets.cheapest import TIME_LIMIT
from perseus.results.fleets.operating_points import LOWER
from perseus.results.fleets.plans import DEDICATED, ONE_TYPE, SHARING

MOST_NAMED = 12
"""Load lines of a fleet, and models of a demand, that are named one by one."""

SURE = 1 - LOWER
"""That a fleet is enough, from which on it is as sure as each of the limits that it rests on."""

MOST_LATE = 3
"""Models that the simulation doubts, with a sentence each."""


def answers(tables: Tables) -> Iterator[Answer]:
    """An answer for the demand, or else for each group of models; none of what the preset smoke
    measured."""
    if (tables["peaks"]["preset"] == "smoke").all():
        return
    if len(tables["fleets"]):
        yield _fleet(tables)
        return
    for models, stretches in tables["crossings"].groupby("models", sort=False):
        names = str(models).split(" + ")
        points = _of_models(tables["peaks"], names)
        is_smoke = (points["preset"] == "smoke").any()
        if not is_smoke and _is_choice(names, stretches, points):
            yield _over_demand(tables, names, stretches, points)


def _is_choice(names: Sequence[str], stretches: pd.DataFrame, points: pd.DataFrame) -> bool:
    """Not where one model has one server, and copies of it gain nothing."""
    return len(names) > 1 or points["server"].nunique() > 1 or bool(stretches["shared"].any())


def _of_models(peaks: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The load lines that a fleet for these models may be made of: no others under load, and with a
    lower limit."""
    only = [loaded(row) <= set(names) for _, row in peaks[["models", "weights"]].iterrows()]
    return peaks[np.array(only, dtype=bool) & (peaks["ci_low_rps"] > 0)]


def _fleet(tables: Tables) -> Answer:
    """For the highest level of the demand; the others are sentences."""
    fleets = tables["fleets"]
    top = fleets[fleets["level"] == fleets["level"].iloc[-1]]
    row = _of(top, SHARING)
    if pd.isna(row["servers"]):
        return Answer("no", f"No fleet carries the demand: {row['reason']}", ())
    if row["servers"] == 0:
        return Answer("no", "Nothing is asked for, so that no server is needed", ())
    mine = tables["fleet_models"]
    mine = mine[(mine["level"] == row["level"]) & (mine["strategy"] == SHARING)]
    points = _of_models(tables["peaks"], list(mine["model"]))
    points = points[points["server"].isin(row["of_servers"].split(", "))]
    late = mine[mine["attained"] < mine["sla_share"]]
    # Where no line of several models has a lower limit, nothing is known of sharing.
    is_known = len(mine) < 2 or bool((points["kind"] != "dedicated").any())
    headline = (
        f"Buy {_servers(row['servers'])} for {significant(row['usd_per_month'])} USD per month:"
        f" {_fleet_words(row)}"
    )
    sentences = (
        f"They carry {_demand_words(row)} requests/s within every SLA, by the lower limits of what"
        f" such servers were measured to carry; that they are enough has a probability"
        f" {_chance(row['probability_enough'])}.",
        *_not_sure_together(row),
        *_not_proven(row),
        *_in_virtual_time(mine, late),
        *_beside(top, row, is_known),
        *_of_one_type(top, row, tables["fleet_servers"]),
        *_other_levels(fleets, row),
        *_if_more(tables["fleet_changes"]),
        *_spot(row, mine),
        *_not_sure(tables, points),
    )
    behind = (to_table("fleets"), *to_lines(points))
    is_smoke = bool((points["preset"] == "smoke").any())
    is_doubtful = len(late) > 0 or is_smoke or row["probability_enough"] < SURE
    return Answer("perhaps" if is_doubtful else "yes", headline, sentences, behind)


def _fleet_words(row: pd.Series) -> str:
    parts = re.split(r" \+ (?=\d+ x \()", row["fleet"])
    return _some(parts, " + ", "more load lines, one by one in fleet_servers.csv")


def _demand_words(row: pd.Series) -> str:
    return _some(row["demand"].split(", "), ", ", "more models")


def _some(parts: Sequence[str], between: str, more: str) -> str:
    """All of them, or the first and how many more there are."""
    if len(parts) <= MOST_NAMED:
        return between.join(parts)
    return f"{between.join(parts[:MOST_NAMED])} and {len(parts) - MOST_NAMED} {more}"


def _of(rows: pd.DataFrame, strategy: str) -> pd.Series:
    return rows[rows["strategy"] == strategy].iloc[0]


def _servers(count: float) -> str:
    return f"{count:.0f} server{'' if count == 1 else 's'}"


def _chance(probability: float) -> str:
    said = chance(probability)
    return f"of {said}" if said[0].isdigit() else said


def _not_sure_together(row: pd.Series) -> Iterator[str]:
    if row["probability_enough"] < SURE:
        yield (
            f"Each of these limits is {percent(SURE)} sure by itself, not all of them at once: to"
            " be as sure of the fleet, leave head-room (demand: headroom)."
        )


def _not_proven(row: pd.Series) -> Iterator[str]:
    if row["status"] == TIME_LIMIT:
        yield (
            "Whether this is the cheapest fleet is not proven: when the solver's time was over, one"
            f" that costs {percent(row['gap'])} less was not ruled out."
        )


def _in_virtual_time(mine: pd.DataFrame, late: pd.DataFrame) -> Iterator[str]:
    if len(mine) and late.empty and mine["attained"].notna().all():
        worst = mine.iloc[int((mine["attained"] - mine["sla_share"]).argmin())]
        yield (
            "Simulated as first-come first-served queues at the speeds that were seen, under"
            f" Poisson arrivals, they keep every SLA, too: of {worst['model']},"
            f" {percent(worst['attained'])} of the requests are within {worst['sla_ms']:g} ms."
        )
    for _, row in late.head(MOST_LATE).iterrows():
        yield (
            "But simulated as first-come first-served queues under Poisson arrivals, only"
            f" {percent_below(row['attained'], row['sla_share'])} of the requests of"
            f" {row['model']} are within {row['sla_ms']:g} ms, of {100 * row['sla_share']:g} % that"
            " must be: measure such a server at this load before you buy."
        )
    if len(late) > MOST_LATE:
        yield f"The same is so of {len(late) - MOST_LATE} more models: see fleet_models.csv."


def _beside(top: pd.DataFrame, row: pd.Series, is_known: bool) -> Iterator[str]:
    """Other ways; `is_known` says whether what sharing saves is."""
    alone = _of(top, DEDICATED)
    if pd.isna(alone["servers"]):
        yield f"Dedicated servers alone are no way: {alone['reason']}."
    elif not is_known:
        yield (
            "What sharing would save is not known: for no server that these models share a lower"
            " limit was found."
        )
    elif row["usd_per_hour"] < alone["usd_per_hour"] * (1 - 1e-9):
        known = ""
        if pd.notna(row["saving_if_known_low"]):
            low, high = row["saving_if_known_low"], row["saving_if_known_high"]
            known = (
                f" (were the capacities known, {bounds(low, high, percent)}; more than nothing with"
                f" a probability {_chance(row['probability_of_saving'])})"
            )
        yield (
            f"Do not buy a server for each model: {_servers(alone['servers'])} would cost"
            f" {significant(alone['usd_per_month'])} USD per month. Sharing saves"
            f" {percent(row['saving'])}{known}."
        )
    else:
        yield "Sharing saves nothing at this demand: dedicated servers cost as much."


def _of_one_type(top: pd.DataFrame, row: pd.Series, servers: pd.DataFrame) -> Iterator[str]:
    """What servers of one type would cost, where there are several and that is more."""
    if (top["strategy"] == ONE_TYPE).any():
        one = _of(top, ONE_TYPE)
        if pd.notna(one["servers"]) and one["usd_per_hour"] > row["usd_per_hour"] * (1 + 1e-9):
            mine = (servers["level"] == one["level"]) & (servers["strategy"] == ONE_TYPE)
            yield (
                f"With servers of the type {servers[mine]['server'].iloc[0]} alone it would cost"
                f" {significant(one['usd_per_month'])} USD per month: {_fleet_words(one)}."
            )


def _other_levels(fleets: pd.DataFrame, top: pd.Series) -> Iterator[str]:
    others = fleets[(fleets["strategy"] == SHARING) & (fleets["level"] != top["level"])]
    for _, row in others[others["servers"] > 0].iterrows():
        yield (
            f"At the {row['level']} demand ({_demand_words(row)} requests/s)"
            f" {_servers(row['servers'])} would do, for {significant(row['usd_per_month'])} USD per"
            " month."
        )


def _if_more(changes: pd.DataFrame) -> Iterator[str]:
    more = changes[(changes["change"] == "demand x 1.25") & (changes["strategy"] == SHARING)]
    for _, row in more[more["usd_per_month"].notna()].iterrows():
        yield (
            f"A quarter more demand takes {_servers(row['servers'])} and"
            f" {significant(row['usd_per_month'])} USD per month."
        )


def _spot(row: pd.Series, mine: pd.DataFrame) -> Iterator[str]:
    if row["on_spot"] == 0:
        return
    lost = (
        "what their revocations lose is not known, since no experiment startup measured how long a"
        " new one takes"
        if pd.isna(row["lost_to_revocations"])
        else f"their revocations lose {_small(row['lost_to_revocations'])} of it on average, and"
        " what new machines take to boot: with servers that make up for it, expect"
        f" {significant(row['usd_per_month_expected'])} USD per month"
    )
    yield f"{percent(row['on_spot'])} of the demand is on servers at the spot price; {lost}."
    yield (
        "Were all servers at the spot price taken away at once, the model with the fewest would"
        f" have {_servers(mine['servers_on_demand'].min())} left."
    )


def _small(share: float) -> str:
    return percent(share) if share >= 5e-4 else "less than 0.1 %"


def _not_sure(tables: Tables, points: pd.DataFrame) -> Iterator[str]:
    yield from beside_others(points)
    yield from not_certified(points)
    yield from _of_batches(tables["operating_points"], points)
    if (points["preset"] == "smoke").any():
        yield (
            "Some capacities were measured with the preset smoke, which is too short to rest a"
            " purchase on."
        )
    if (points["repeats_used"] < 2).any():
        yield (
            "Some capacities rest on one run each: their limits do not cover what lies between one"
            " start of a server and the next."
        )
    if (points["preset"] == "quick").any():
        yield QUICK


def _of_batches(carried: pd.DataFrame, points: pd.DataFrame) -> Iterator[str]:
    """A demand is one of single images."""
    batched = carried[carried["request_batch_size"] > 1][["scenario", "load_line"]]
    mixes = points.merge(batched.drop_duplicates())["mix"].drop_duplicates()
    if len(mixes):
        yield (
            f"Measured with requests of several images each: {', '.join(mixes)}. That servers carry"
            " as many images one by one is not known."
        )


def _over_demand(
    tables: Tables, names: Sequence[str], stretches: pd.DataFrame, points: pd.DataFrame
) -> Answer:
    who = listed(names)
    most = significant(stretches["to_rps"].iloc[-1])
    rows = [row for _, row in stretches.iterrows()]
    sentences = [_stretch(row) for row in rows[:MOST_SAID]]
    if len(rows) > MOST_SAID:
        sentences.append("And so on: see the table of what is the cheapest at which demand.")
    sentences += _not_sure(tables, points)
    behind = (to_table("crossings"), *to_lines(points))
    if len(names) == 1:
        headline = f"The cheapest server for {who} depends on the demand"
        if stretches["server"].nunique() == 1:
            headline = (
                f"The cheapest server for {who} is {rows[0]['server']} at every demand up to {most}"
                " requests/s"
            )
        kind = "yes" if stretches["server"].nunique() == 1 else "unclear"
        return Answer(kind, headline, tuple(sentences), behind)
    kind, headline = _whether_to_share(who, rows, most)
    sentences.append(
        f"All of this is for requests of {_proportion(rows)}, in the order of the names. For"
        " another demand, state it (demand: in the configuration), or see what one server carries."
    )
    return Answer(kind, headline, tuple(sentences), behind)


def _whether_to_share(who: str, rows: Sequence[pd.Series], most: str) -> tuple[str, str]:
    """The kind of the answer and its headline."""
    shared = [row for row in rows if row["shared"]]
    at_first = list(takewhile(lambda row: row["shared"], rows))
    if not shared:
        return "no", (
            f"{who} need servers of their own: sharing is cheaper at no demand from"
            f" {significant(rows[0]['from_rps'])} to {most} requests/s"
            f" ({_servers(rows[-1]['to_servers'])})"
        )
    if any(pd.isna(row["least_saving"]) for row in shared):
        return "unknown", (
            f"Only shared servers were measured with all of {who}: what sharing saves is not known"
        )
    if len(shared) == len(rows):
        return "yes", (
            f"{who} should share at every demand: it saves {_range(shared)}{_how_sure(shared)}"
            f" (looked at up to {most} requests/s together, {_proportion(rows)})"
        )
    if at_first:
        until = significant(at_first[-1]["to_rps"])
        return "yes", (
            f"{who} should share up to {until} requests/s together, {_proportion(rows)}: it saves"
            f" {_range(at_first)}{_how_sure(at_first)}"
        )
    saving = percent(max(row["most_saving"] for row in shared))
    return "yes", f"{who} should share at some demands: it saves up to {saving}{_how_sure(shared)}"


def _proportion(rows: Sequence[pd.Series]) -> str:
    """76 % : 24 %"""
    each = (part.rsplit(" ", 1)[1] for part in rows[0]["proportion"].split(", "))
    return " : ".join(each).replace("%", " %")


MOST_SAID = 4
"""Stretches of the demand that are told of in words."""


def _stretch(row: pd.Series) -> str:
    first, last = significant(row["from_rps"]), significant(row["to_rps"])
    at = f"At {first}" if first == last else f"From {first} to {last}"
    is_known = row["shared"] and pd.notna(row["least_saving"])
    saves = f", {_range([row])} cheaper than dedicated ones{_how_sure([row])}" if is_known else ""
    what = "shared servers" if row["shared"] else "dedicated servers"
    count = _from_to(row["from_servers"], row["to_servers"], "{:.0f}".format)
    usd = _from_to(row["from_usd_per_month"], row["to_usd_per_month"], significant)
    return (
        f"{at} requests/s together, {what} of {row['server']} are the cheapest: {count}"
        f" server{'' if count == '1' else 's'} for {usd} USD per month{saves}."
    )


def _from_to(first: float, last: float, write: Callable[[float], str]) -> str:
    return write(first) if first == last else f"{write(first)} to {write(last)}"


def _range(stretches: Sequence[pd.Series]) -> str:
    """Of what these save."""
    low = percent(min(row["least_saving"] for row in stretches))
    high = percent(max(row["most_saving"] for row in stretches))
    return low if low == high else f"{low} to {high}"


def _how_sure(stretches: Sequence[pd.Series]) -> str:
    """That these save anything, where it is least likely; nothing where it is not known."""
    chances = [row["probability_of_saving"] for row in stretches]
    if any(pd.isna(each) for each in chances):
        return ""
    least = min(chances)  # of 100 draws
    return f", with a probability {'> 0.99' if least > 0.99 else f'of {least:.2f} or more'}"
