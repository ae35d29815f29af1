"""Make the table `fleets`: the cheapest servers for the demand by three strategies (only dedicated
servers, dedicated and shared servers, or servers of one type)."""

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

DESCRIPTION = (
    "The table states the cheapest fleet for the demand. One row per strategy (the servers that the"
    " fleet may have) and level of the demand. The table is empty without a demand."
)
TITLE = "What to buy"
NOTE = (
    "The table shows the cheapest whole servers for the demand, found by integer programming. The"
    " plan assumes that each server carries only the lower limit of its measured capacity: the"
    f" capacity exceeds its lower limit with a probability of 95 %. A month has {HOURS_PER_MONTH}"
    " hours. The columns 'if known' show the 95 % interval of the price that the cheapest fleet"
    " would have if the capacities were known exactly. These columns are empty in three cases: the"
    " plan is too large to compute the interval, no fleet carries the demand in one of the random"
    " draws of the capacities, or a capacity has no upper limit. P(enough) is the probability that"
    " the servers carry the demand. 'Within the SLA' is the share of requests within the SLA in a"
    " simulation of the fleet, for the model with the lowest share. 'Lost' is the share of the"
    " demand that is lost because the cloud revokes spot servers. A cheaper fleet may exist, but"
    " saves at most the gap (a share of the price)."
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
    """Return for each row of the strategy SHARING whether the fleet costs at most as much as the
    dedicated fleet.

    The solver may miss a saving of the share `gap`, so the function compares (cost of the fleet) x
    (1 - `gap`). The result is true in rows of other strategies, and without a dedicated fleet.
    """
    dedicated = usd_per_hour.where(strategy == DEDICATED).groupby(level).transform("max")
    is_cheap = usd_per_hour * (1 - gap) <= dedicated * (1 + 10 * TOLERANCE)
    return (strategy != SHARING) | dedicated.isna() | is_cheap


SCHEMA = Schema(
    [
        *FLEET,
        column("demand", TEXT, "requests/s", "demand for each model, in requests of one image"),
        column("of_servers", TEXT, "", "types of servers that the configured demand permits"),
        column("reason", TEXT, "",
            "reason why Perseus finds no fleet for the demand. Empty if Perseus finds a fleet."),
        column("servers", WHOLE, "servers", "number of whole servers to buy", null=True),
        column("fleet", TEXT, "",
            "servers of the fleet, such as 2 x (a 1 : 1 b) + 1 x (b): two servers with the load"
            " line a 1 : 1 b, and one server with b alone"),
        column("usd_per_hour", REAL, "USD/h", "price per hour of all servers of the fleet"),
        column("usd_per_month", REAL, "USD", f"price of the fleet for {HOURS_PER_MONTH} hours"),
        column("usd_if_known_low", REAL, "USD",
            "lower end of the 95 % interval of the price per month that the cheapest fleet would"
            " have if the capacities of servers were known exactly. For the interval, Perseus plans"
            " a fleet for each of many random draws of the capacities. Null in three cases: (1) the"
            " plan is too large to repeat it for each draw; (2) no fleet carries the demand in one"
            " of the draws; (3) a capacity has no upper limit (docs/explanation/repeats.md)."),
        column("usd_if_known_high", REAL, "USD",
            "upper end of the 95 % interval of the price per month, as for `usd_if_known_low`"),
        column("saving", REAL, "share",
            "saving of the fleet: 1 - (price of the fleet / price of the dedicated fleet for the"
            " same level of the demand)", least=-inf),
        column("saving_if_known_low", REAL, "share",
            "lower end of the 95 % interval of the saving that the cheapest fleet would have if the"
            " capacities of servers were known exactly", least=-inf),
        column("saving_if_known_high", REAL, "share",
            "upper end of the 95 % interval of the saving, as for `saving_if_known_low`",
               least=-inf),
        column("probability_of_saving", REAL, "",
            "probability that the cheapest fleet costs less than the cheapest dedicated fleet, if"
            " both are planned for the same random draw of the capacities. Null if"
            " `usd_if_known_low` of one of the two fleets is null.",
               least=0, most=1),
        column("probability_enough", REAL, "",
            "probability that the servers of the fleet carry the demand for every model: the share"
            " of the joint random draws of the capacities in which the servers carry this demand",
               least=0, most=1),
        column("attained", REAL, "share",
            "share of the requests within the SLA in a simulation of the fleet, for the model with"
            " the lowest share. Null if the service times of a server are unknown."),
        *SOLVED,
        column("on_spot", REAL, "share",
            "share of the demand that spot servers carry"),
        column("lost_to_revocations", REAL, "share",
            "share of the demand that is lost because of revocations: if the cloud revokes a spot"
            " server, the demand on this server is lost until a new server has started"
            " (docs/explanation/fleets.md). The share is 0 without spot servers. Null if no"
            " experiment `startup` measured the start time of the spot servers."),
        column("usd_per_month_expected", REAL, "USD",
            "expected price of the fleet per month: `usd_per_month`, plus the price of new spot"
            " servers that replace revoked servers, for the time in which the new servers start"
            " (docs/explanation/fleets.md). Null if no experiment `startup` measured the start time"
            " of the spot servers."),
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
        holds(
            "a fleet that may use shared servers costs no more than the dedicated fleet",
            _is_no_dearer,
        ),
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
    """Return the ends of the 95 % interval of the draws. Each end is the value of a draw: a value
    between two draws may be the cost of no fleet."""
    if not len(draws):
        return np.nan, np.nan
    low = np.quantile(draws, TAIL, method="lower")
    return float(low), float(np.quantile(draws, 1 - TAIL, method="higher"))


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
    """Return the columns `on_spot`, `lost_to_revocations` and `usd_per_month_expected`
    (docs/explanation/fleets.md).

    If the spot servers of the plan have different start times, the function computes the share of
    lost demand from the longest start time.
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
    """Return the mean start time of each server in s, by the name of the server: the time from the
    start until all models are ready.

    The result leaves out remote servers, because Perseus cannot start a remote server. If several
    cells measured the start time of a server, the result has the longest mean time of a cell.
    """
    found: dict[str, float] = {}
    for record in results.of_kind(StartupRecord):
        if not record.starts or record.task.server.remote:
            continue
        mean_s = float(np.mean([start.ready_s for start in record.starts]))
        server = record.task.server.name
        found[server] = max(found.get(server, 0.0), mean_s)
    return found
