"""Make the table `fleets`: the cheapest servers for the demand among dedicated servers, among
dedicated and shared servers, and among servers of one type."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.stats import TAIL, Floats
from perseus.results.columns import written
from perseus.results.fleets.columns import FLEET, FLEET_OR_REASON, SOLVED, fleet, solved
from perseus.results.fleets.plans import DEDICATED, HOURS_PER_MONTH, SHARING, SPOT, Plan
from perseus.results.records import Row
from perseus.results.schema import TOLERANCE, Schema, ascending, close, column, holds
from perseus.results.study_results import StudyResults
from perseus.results.tables.startup import StartupRecord

if TYPE_CHECKING:  # needed only for type checks
    import pandas as pd

DESCRIPTION = "One row per level of the demand and strategy. The table is empty without a demand."
TITLE = "What to buy"
NOTE = (
    "The table shows the cheapest whole servers for the demand, found by integer programming. The"
    " plan uses lower limits of the measured capacities: each capacity exceeds its lower limit with"
    f" a probability of 95 %. A month has {HOURS_PER_MONTH} hours. The columns 'if known' show the"
    " 95 % interval of the price that the cheapest fleet would have if the capacities were known"
    " exactly. P(enough) is the probability that the servers carry the demand. 'Within the SLA' is"
    " the share of requests within the SLA in a simulated queue, for the model with the lowest"
    " share. 'Lost' is the share of the demand that is lost because the cloud revokes spot servers."
    " The gap is the largest share of the price by which another fleet may be cheaper."
)
SHOWN = {
    "demand": "level",
    "permitted servers": "strategy",
    "servers": "servers",
    "USD per month": "usd_per_month",
    "if known, from (USD per month)": "usd_if_known_low",
    "if known, to (USD per month)": "usd_if_known_high",
    "saving": "saving",
    "P(saving > 0)": "probability_of_saving",
    "P(enough)": "probability_enough",
    "within the SLA": "attained",
    "lost": "lost_to_revocations",
    "gap": "gap",
    "fleet": "fleet",
    "why not": "reason",
}


def _is_no_dearer(
    level: pd.Series, strategy: pd.Series, usd_per_hour: pd.Series, gap: pd.Series
) -> pd.Series:
    """Return whether a fleet with sharing costs no more than the dedicated fleet, within the
    tolerance of the solver (its gap)."""
    dedicated = usd_per_hour.where(strategy == DEDICATED).groupby(level).transform("max")
    is_cheap = usd_per_hour * (1 - gap) <= dedicated * (1 + 10 * TOLERANCE)
    return (strategy != SHARING) | dedicated.isna() | is_cheap


SCHEMA = Schema(
    [
        *FLEET,
        column("demand", TEXT, "requests/s", "demand for each model, in requests of one image"),
        column("of_servers", TEXT, "", "servers that the fleet may use"),
        column("reason", TEXT, "",
            "reason why no fleet carries the demand. Empty if a fleet carries the demand."),
        column("servers", WHOLE, "servers", "number of whole servers to buy", null=True),
        column("fleet", TEXT, "",
            "servers of the fleet, such as 2 x (a 1 : 1 b) + 1 x (b). Each term is a number of"
            " servers x (load line)."),
        column("usd_per_hour", REAL, "USD/h", "price of the fleet"),
        column("usd_per_month", REAL, "USD", f"price of the fleet for {HOURS_PER_MONTH} hours"),
        column("usd_if_known_low", REAL, "USD",
            "lower end of the 95 % interval of the price per month that the cheapest fleet would"
            " have if the capacities were known exactly. Null for large plans, or if no fleet"
            " carries the demand in a draw of the capacities."),
        column("usd_if_known_high", REAL, "USD",
            "upper end of the interval that begins at usd_if_known_low"),
        column("saving", REAL, "share",
            "saving of the fleet: 1 - (price of the fleet / price of the dedicated fleet for the"
            " same level of the demand)", least=-inf),
        column("saving_if_known_low", REAL, "share",
            "lower end of the 95 % interval of the saving that would result if the capacities were"
            " known exactly", least=-inf),
        column("saving_if_known_high", REAL, "share",
            "upper end of the interval that begins at saving_if_known_low", least=-inf),
        column("probability_of_saving", REAL, "",
            "probability of a saving: the share of the joint draws of the capacities in which the"
            " saving is above 0",
               least=0, most=1),
        column("probability_enough", REAL, "",
            "probability that the fleet carries the demand for every model, from joint draws of"
            " the capacities", least=0, most=1),
        column("attained", REAL, "share",
            "share of the requests within the SLA in a simulated queue, for the model with the"
            " lowest share. Null if the service times of a server are unknown."),
        *SOLVED,
        column("on_spot", REAL, "share",
            "share of the demand that goes to servers at the spot price"),
        column("lost_to_revocations", REAL, "share",
            "share of the demand that is lost while new servers replace revoked spot servers:"
            " on_spot x r x s / (1 + r x s). Here, r is the number of revocations of a spot server"
            " per hour. s is the longest measured start time of the spot servers in hours, without"
            " the boot of a new machine. The share is 0 without spot servers, and null without an"
            " experiment `startup`."),
        column("usd_per_month_expected", REAL, "USD",
            "price of the fleet per month with 1 + r x s times as many spot servers (r and s as in"
            " lost_to_revocations), since the cloud also charges for servers that start. Null"
            " without an experiment `startup`."),
    ],
    key=("level", "strategy"),
    holds=[
        FLEET_OR_REASON,
        holds(
            f"usd_per_month = {HOURS_PER_MONTH} x usd_per_hour",
            lambda usd_per_month, usd_per_hour: close(
                usd_per_month, HOURS_PER_MONTH * usd_per_hour
            ),
        ),
        ascending("usd_if_known_low", "usd_if_known_high"),
        ascending("usd_per_month", "usd_per_month_expected"),
        ascending("saving_if_known_low", "saving_if_known_high"),
        holds("a fleet with sharing allowed costs no more than dedicated servers", _is_no_dearer),
    ],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    demand = results.task.demand
    if demand is None:
        return
    alone = {plan.level.name: plan for plan in results.plans if plan.strategy == DEDICATED}
    for plan, within in zip(results.plans, results.attainments, strict=True):
        low, high = _ends(plan.usd_draws)
        yield {
            **fleet(results.task.study, plan),
            "demand": ", ".join(f"{name} {written(rps)}" for name, rps in plan.level.rps.items()),
            "of_servers": ", ".join(demand.servers),
            "reason": plan.why_not,
            "servers": None if plan.why_not else plan.servers,
            "fleet": plan.description,
            "usd_per_hour": plan.usd_per_hour,
            "usd_per_month": plan.usd_per_month,
            "usd_if_known_low": low * HOURS_PER_MONTH,
            "usd_if_known_high": high * HOURS_PER_MONTH,
            **_saving(plan, alone[plan.level.name]),
            "probability_enough": plan.probability_enough,
            "attained": float(np.min(list(within.values()))) if within else np.nan,
            **solved(plan),
            **_spot(results, plan),
        }


def _ends(draws: Floats) -> tuple[float, float]:
    if not len(draws):
        return np.nan, np.nan
    low, high = np.quantile(draws, [TAIL, 1 - TAIL])
    return float(low), float(high)


def _saving(plan: Plan, alone: Plan) -> Row:
    both = len(plan.usd_draws) and len(alone.usd_draws)
    draws: Floats = 1 - plan.usd_draws / alone.usd_draws if both else np.empty(0)
    low, high = _ends(draws)
    return {
        "saving": 1 - plan.usd_per_hour / alone.usd_per_hour if alone.usd_per_hour else np.nan,
        "saving_if_known_low": low,
        "saving_if_known_high": high,
        "probability_of_saving": float(np.mean(draws > 1e-9)) if both else np.nan,
    }


def _spot(results: StudyResults, plan: Plan) -> Row:
    """Return the values of the columns on spot servers: share of the demand, loss, and price.

    The function computes the loss from the longest start time of all spot servers in the plan.
    """
    spot = results.task.demand.spot if results.task.demand else None
    used = [(count, offer) for count, offer in plan.chosen if offer.pricing == SPOT]
    if spot is None or not used:
        no_spot = np.nan if plan.why_not else 0.0
        return {
            "on_spot": no_spot,
            "lost_to_revocations": no_spot,
            "usd_per_month_expected": plan.usd_per_month,
        }
    starts_s = _starts_s(results)
    hours = [starts_s.get(offer.point.server, np.nan) / 3600 for _, offer in used]
    starts = spot.revocations_per_hour * np.array(hours)  # an unknown start time is NaN
    # Share of time spent on starts: with r revocations per hour, a server runs for 1 / r hours on
    # average, and then starts for s hours.
    starting = starts / (1 + starts)
    usd_per_hour = np.array([count * offer.usd_per_hour for count, offer in used])
    total = sum(plan.level.rps.values())
    on_spot = sum(plan.spot_share(name) * plan.level.rps[name] / total for name in plan.models)
    more_usd = float((usd_per_hour * starts).sum()) * HOURS_PER_MONTH
    return {
        "on_spot": on_spot,
        "lost_to_revocations": on_spot * float(starting.max()),
        "usd_per_month_expected": plan.usd_per_month + more_usd,
    }


def _starts_s(results: StudyResults) -> dict[str, float]:
    """Return, for each server, the mean time in s from its start until all models are ready.

    If several scenarios measure the start time of a server, the result is the longest mean time of
    a scenario.
    """
    found: dict[str, float] = {}
    for record in results.of_kind(StartupRecord):
        if not record.starts:
            continue
        mean_s = float(np.mean([start.ready_s for start in record.starts]))
        server = record.task.server.name
        found[server] = max(found.get(server, 0.0), mean_s)
    return found
