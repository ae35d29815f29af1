"""Conclusion: the servers to buy for the demand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from perseus.peak.outcome import Outcome
from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.sharing import QUICK, beside_others, loaded, not_certified
from perseus.report.links import to_lines, to_table
from perseus.report.numbers import (
    bounds,
    chance,
    counted,
    listed,
    percent,
    percent_below,
    significant,
)
from perseus.results.columns import written
from perseus.results.fleets.cheapest import TIME_LIMIT
from perseus.results.fleets.operating_points import LOWER
from perseus.results.fleets.plans import DEDICATED, ONE_TYPE, SHARING

MAX_NAMED = 12
"""A sentence lists at most this many items: load lines of a fleet, or models of a demand."""

SURE = 1 - LOWER
"""The conclusion calls a fleet sufficient if the fleet carries the demand with at least this
probability. The capacity of a server exceeds its lower limit with the same probability."""

MAX_LATE = 3
"""If models miss their SLA in the simulated queue, at most this many of them have a sentence of
their own."""


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield one conclusion if the study has a demand and at least one result of a preset other than
    smoke."""
    if len(tables["fleets"]) and not (tables["peaks"]["preset"] == "smoke").all():
        yield _fleet(tables)


def points_of(peaks: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the load lines that a fleet for the models `names` may use. On such a load line, only
    models in `names` have load, and the lower limit of the peak is above 0."""
    lines = peaks[["models", "weights"]].to_dict("records")  # iterrows takes 30 times as much time
    only = [loaded(line) <= set(names) for line in lines]
    return peaks[np.array(only, dtype=bool) & (peaks["ci_low_rps"] > 0)]


def _fleet(tables: Tables) -> Conclusion:
    """Return the conclusion about the fleet for the highest level of the demand, with one sentence
    for each of the other levels."""
    fleets = tables["fleets"]
    top = fleets[fleets["level"] == fleets["level"].iloc[-1]]
    row = _of(top, SHARING)
    if pd.isna(row["servers"]):
        if models := infeasible_models(tables, row):
            why = f"no measured server keeps the SLA of {_some(models, ', ', 'more models')}"
            return Conclusion("no", f"No fleet carries the demand: {why}", ())
        headline = f"The servers that the demand needs are not known: {row['reason']}"
        return Conclusion("unknown", headline, ())
    if row["servers"] == 0:
        return Conclusion("no", "The demand is zero: no server is needed", ())
    mine, points = _models_of(tables, row), _points_of(tables, row)
    late = mine[mine["attained"] < mine["sla_share"]]
    headline = (
        f"Buy {servers(row['servers'])} for {significant(row['usd_per_month'])} USD per month:"
        f" {_fleet_text(row)}"
    )
    sentences = (
        f"These servers carry {_demand_text(row)} requests/s within every SLA. The plan uses"
        " lower limits of the measured capacities. The servers are enough with a probability"
        f" {_chance(row['probability_enough'])}.",
        *_without_demand(row),
        *_not_sure_together(row),
        *_not_proven(row),
        *_in_virtual_time(mine, late),
        *_beside(top, row, tables),
        *_of_one_type(top, row, tables["fleet_servers"]),
        *_other_levels(fleets, row),
        *_if_more(tables["fleet_changes"]),
        *_spot(row, mine),
        *not_sure(tables, points),
    )
    behind = (to_table("fleets"), *to_lines(points))
    is_sure = row["probability_enough"] >= SURE and not is_doubtful(tables, row)
    return Conclusion("yes" if is_sure else "perhaps", headline, sentences, behind)


def infeasible_models(tables: Tables, row: pd.Series) -> list[str]:
    """Return the models with a demand that no measured server can serve within the SLA.

    `row` is a row of the table fleets. A model is in the result if each search on a dedicated
    server served requests of the model, but found no rate that keeps the SLA.
    """
    repeats = tables["tenants"]
    alone = repeats[(repeats["kind"] == "dedicated") & repeats["server"].isin(_permitted(row))]
    fails = (alone["verdict"] == Outcome.INFEASIBLE) & alone["unloaded_p50_ms"].notna()
    of_all = fails.groupby(alone["models"], sort=False).all()
    return [model for model, rps in _demands(row) if rps != written(0) and of_all.get(model, False)]


def is_doubtful(tables: Tables, row: pd.Series) -> bool:
    """Return whether a fleet is doubtful: a model misses its SLA in the simulated queue, or a load
    line was measured with the preset smoke. `row` is the row of the fleet in the table fleets."""
    mine = _models_of(tables, row)
    is_late = bool((mine["attained"] < mine["sla_share"]).any())
    return is_late or bool((_points_of(tables, row)["preset"] == "smoke").any())


def _models_of(tables: Tables, row: pd.Series) -> pd.DataFrame:
    """Return the rows of the table fleet_models for the fleet in a row of the table fleets."""
    of = tables["fleet_models"]
    return of[(of["level"] == row["level"]) & (of["strategy"] == SHARING)]


def _points_of(tables: Tables, row: pd.Series) -> pd.DataFrame:
    """Return the load lines that the fleet in a row of the table fleets may use."""
    points = points_of(tables["peaks"], list(_models_of(tables, row)["model"]))
    return points[points["server"].isin(_permitted(row))]


def is_saving_known(tables: Tables, row: pd.Series) -> bool:
    """Return whether the saving of sharing is known for the fleet in a row of the table fleets. The
    saving is unknown if no load line with several models has a lower limit above 0."""
    points = _points_of(tables, row)
    return len(_models_of(tables, row)) < 2 or bool((points["kind"] != "dedicated").any())


def may_save_less(tables: Tables, row: pd.Series) -> bool:
    """Return whether the fleet in a row of the table fleets may save less than the row states.

    The function returns true if the probability of a saving is unknown, and the interval of a
    dedicated peak has no upper end. Then dedicated servers may carry more than their estimate.
    """
    points = _points_of(tables, row)
    alone = points[points["kind"] == "dedicated"]
    is_unknown = row["saving"] > 1e-9 and pd.isna(row["probability_of_saving"])
    return bool(is_unknown and np.isinf(alone["ci_high_rps"]).any())


def _fleet_text(row: pd.Series) -> str:
    parts = re.split(r" \+ (?=\d+ x \()", row["fleet"])
    return _some(parts, " + ", "more load lines (see fleet_servers.csv)")


def _permitted(row: pd.Series) -> list[str]:
    """Return the types of servers that the demand in a row of the table fleets permits."""
    return str(row["of_servers"]).split(", ")


def _demands(row: pd.Series) -> list[tuple[str, str]]:
    """Return each model of a row of the table fleets, with its demand as text."""
    stated = (each.rpartition(" ") for each in row["demand"].split(", "))
    return [(model, rps) for model, _, rps in stated]


def _demand_text(row: pd.Series) -> str:
    return _some(row["demand"].split(", "), ", ", "more models")


def _some(parts: Sequence[str], between: str, more: str) -> str:
    """Return the parts as text, separated by `between`. If there are more than MAX_NAMED parts, the
    text has the first parts and the number of the other parts, with the noun `more`."""
    if len(parts) <= MAX_NAMED:
        return between.join(parts)
    return f"{between.join(parts[:MAX_NAMED])} and {len(parts) - MAX_NAMED} {more}"


def _of(rows: pd.DataFrame, strategy: str) -> pd.Series:
    return rows[rows["strategy"] == strategy].iloc[0]


def servers(count: float) -> str:
    return counted(f"{count:.0f}", "server")


def _chance(probability: float) -> str:
    share = chance(probability)
    return f"of {share}" if share[0].isdigit() else share


def _not_sure_together(row: pd.Series) -> Iterator[str]:
    if row["probability_enough"] < SURE:
        yield (
            f"Each capacity exceeds its lower limit with a probability of {percent(SURE)}. The"
            " probability that all capacities exceed their lower limits at once is lower. To"
            " increase this probability, set a headroom (key demand.headroom)."
        )


def _not_proven(row: pd.Series) -> Iterator[str]:
    if row["status"] == TIME_LIMIT:
        yield (
            f"The solver ran out of time: another fleet may cost up to {percent(row['gap'])} less."
        )


def _in_virtual_time(mine: pd.DataFrame, late: pd.DataFrame) -> Iterator[str]:
    if len(mine) and late.empty and mine["attained"].notna().all():
        worst = mine.iloc[int((mine["attained"] - mine["sla_share"]).argmin())]
        yield (
            "In a simulated queue with Poisson arrivals, the fleet also keeps every SLA. The margin"
            f" is smallest for {worst['model']}: {percent_below(worst['attained'], 1)} of its"
            f" requests take at most {worst['sla_ms']:g} ms."
        )
    for _, row in late.head(MAX_LATE).iterrows():
        yield (
            "But in a simulated queue with Poisson arrivals, only"
            f" {percent_below(row['attained'], row['sla_share'])} of the requests of"
            f" {row['model']} take at most {row['sla_ms']:g} ms; the SLA requires"
            f" {100 * row['sla_share']:g} %. Before you buy, measure a server of this fleet at its"
            " planned load."
        )
    if len(late) > MAX_LATE:
        yield (
            f"In the simulated queue, {len(late) - MAX_LATE} more models miss their SLA: see"
            " fleet_models.csv."
        )


def _beside(top: pd.DataFrame, row: pd.Series, tables: Tables) -> Iterator[str]:
    """Yield sentences that compare the fleet with dedicated servers."""
    alone = _of(top, DEDICATED)
    if pd.isna(alone["servers"]):
        yield f"The cost of a fleet of dedicated servers is not known: {alone['reason']}."
    elif not is_saving_known(tables, row):
        yield (
            "The saving of sharing is not known: the measurements give no lower limit for the"
            " capacity of a server that these models share."
        )
    elif row["usd_per_hour"] < alone["usd_per_hour"] * (1 - 1e-9):
        known = ""
        if pd.notna(row["saving_if_known_low"]):
            low, high = row["saving_if_known_low"], row["saving_if_known_high"]
            known = (
                f" (95 % interval {bounds(low, high, percent)}; probability of a saving"
                f" {_chance(row['probability_of_saving']).removeprefix('of ')})"
            )
        yield (
            f"Dedicated servers cost more: {servers(alone['servers'])} for"
            f" {significant(alone['usd_per_month'])} USD per month. Sharing saves"
            f" {percent(row['saving'])}{known}."
        )
        if may_save_less(tables, row):
            yield (
                "The saving may be smaller, because the measurements give no upper limit for the"
                " capacity of a dedicated server."
            )
    else:
        yield (
            "Sharing saves nothing at this demand: a fleet of dedicated servers costs as much as"
            " this fleet."
        )


def _of_one_type(top: pd.DataFrame, row: pd.Series, servers: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence about the cheapest fleet with only one type of server, if this fleet costs
    more than the recommended fleet."""
    if (top["strategy"] == ONE_TYPE).any():
        one = _of(top, ONE_TYPE)
        if pd.notna(one["servers"]) and one["usd_per_hour"] > row["usd_per_hour"] * (1 + 1e-9):
            mine = (servers["level"] == one["level"]) & (servers["strategy"] == ONE_TYPE)
            yield (
                f"With servers of type {servers[mine]['server'].iloc[0]} only, the fleet would"
                f" cost {significant(one['usd_per_month'])} USD per month: {_fleet_text(one)}."
            )


def _other_levels(fleets: pd.DataFrame, top: pd.Series) -> Iterator[str]:
    others = fleets[(fleets["strategy"] == SHARING) & (fleets["level"] != top["level"])]
    for _, row in others[others["servers"] > 0].iterrows():
        yield (
            f"At the {row['level']} demand ({_demand_text(row)} requests/s),"
            f" {servers(row['servers'])} would be enough, for {significant(row['usd_per_month'])}"
            " USD per month."
        )
        yield from _without_demand(row)


def _without_demand(row: pd.Series) -> Iterator[str]:
    """Yield a sentence that names the models whose demand is 0 at the level of the fleet in `row`.
    The fleet has no server for these models."""
    if idle := [model for model, rps in _demands(row) if rps == written(0)]:
        at = "" if row["level"] == "demand" else f" at the {row['level']} demand"
        yield f"No server is planned for {_some(idle, ', ', 'more models')}{at}: the demand is 0."


def _if_more(changes: pd.DataFrame) -> Iterator[str]:
    more = changes[(changes["change"] == "demand x 1.25") & (changes["strategy"] == SHARING)]
    for _, row in more[more["usd_per_month"].notna()].iterrows():
        yield (
            f"For 25 % more demand, you need {servers(row['servers'])} for"
            f" {significant(row['usd_per_month'])} USD per month."
        )


def _spot(row: pd.Series, mine: pd.DataFrame) -> Iterator[str]:
    if row["on_spot"] == 0:
        return
    lost = (
        "the loss through revocations is not known, because no experiment of the kind startup"
        " measured the start time of a server"
        if pd.isna(row["lost_to_revocations"])
        else "on average over time, the fleet loses"
        f" {_small(row['lost_to_revocations'])} of the whole demand, because a replacement for a"
        " revoked server must first start. This loss does not include the time in which a"
        " new machine boots. You also pay for replacement servers while they start, so expect a"
        f" cost of {significant(row['usd_per_month_expected'])} USD per month"
    )
    yield f"{percent(row['on_spot'])} of the demand is on servers at the spot price; {lost}."
    yield (
        "If all spot servers were revoked at once, the model with the fewest remaining servers"
        f" would have {servers(mine['servers_on_demand'].min())}."
    )


def _small(share: float) -> str:
    return percent(share) if share >= 5e-4 else "less than 0.1 %"


def not_sure(tables: Tables, points: pd.DataFrame) -> Iterator[str]:
    yield from beside_others(points)
    yield from not_certified(points)
    yield from _of_batches(tables["operating_points"], points)
    if (points["preset"] == "smoke").any():
        yield (
            "Some capacities were measured with the preset smoke. Such measurements are too short"
            " to decide on a purchase."
        )
    is_once = points["repeats_used"] < 2
    if is_once.any():
        which = "The capacities" if is_once.all() else "Some capacities"
        yield (
            f"{which} come from a single run: their intervals do not include the variation between"
            " starts of a server."
        )
    if (points["preset"] == "quick").any():
        yield QUICK


def _of_batches(carried: pd.DataFrame, points: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence about capacities that were measured with several images per request. The
    demand counts requests with a single image."""
    batched = carried[carried["request_batch_size"] > 1][["scenario", "load_line"]]
    mixes = points.merge(batched.drop_duplicates())["mix"].drop_duplicates()
    if len(mixes):
        yield (
            f"The capacities of {listed(list(mixes))} were measured with requests of several images"
            " each. With requests of single images, servers may carry fewer images."
        )
