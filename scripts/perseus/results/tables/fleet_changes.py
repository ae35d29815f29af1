"""Make the table `fleet_changes`: the cheapest fleets if the demand or a price changes."""

from __future__ import annotations

from collections.abc import Iterator

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.results.fleets.changes import Change, changes
from perseus.results.fleets.cheapest import GAP
from perseus.results.fleets.columns import FLEET, FLEET_OR_REASON, SOLVED, fleet, solved
from perseus.results.records import Row
from perseus.results.schema import Schema, column
from perseus.results.study_results import StudyResults

DESCRIPTION = (
    "The table states the cheapest fleet if the demand or a price changes. One row per strategy and"
    " change. A change multiplies the highest level of the demand, or the price of one type of"
    " server, by the column `factor`. The table is empty without a demand."
)
TITLE = "If the demand or a price changes"
NOTE = (
    "The table shows the cheapest servers for the highest level of the demand, if the demand or a"
    " price changes by a factor. If no other fleet is cheaper after the change, Perseus keeps the"
    " fleet from before the change. A cheaper fleet may exist, but saves at most the gap (a share"
    f" of the price). If the gap is above {GAP:.2%}, the solver reached its time limit."
)
SHOWN = {
    "permitted servers": "strategy",
    "change": "change",
    "servers": "servers",
    "USD per month": "usd_per_month",
    "cost / cost without the change": "cost_ratio",
    "same servers": "keeps_servers",
    "gap": "gap",
    "fleet": "fleet",
}
SCHEMA = Schema(
    [
        *FLEET,
        column("change", TEXT, "",
            "quantity that changes and its factor, such as demand x 0.5. The quantity is the demand"
            " for every model, or the price of one type of server."),
        column("factor", REAL, "",
            "factor by which the change multiplies the demand or the price", null=False, least=0),
        column("reason", TEXT, "",
            "reason why Perseus finds no fleet after the change. Empty if Perseus finds a fleet."),
        column("servers", WHOLE, "servers",
            "number of whole servers to buy after the change", null=True),
        column("fleet", TEXT, "",
            "servers of the fleet, such as 2 x (a 1 : 1 b) + 1 x (b): two servers with the load"
            " line a 1 : 1 b, and one server with b alone"),
        column("usd_per_month", REAL, "USD", "price of the fleet per month after the change"),
        column("cost_ratio", REAL, "",
            "price of the fleet after the change / price of the fleet without the change", least=0),
        column("keeps_servers", FLAG, "",
            "true if the fleet has the same servers as without the change"),
        *SOLVED,
    ],
    key=("level", "strategy", "change"),
    holds=[FLEET_OR_REASON],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for change in changes(results.plans, results.task.demand):
        plan = change.plan
        yield {
            **fleet(results.task.study, plan),
            "change": _words(change),
            "factor": change.factor,
            "reason": plan.why_not,
            "servers": None if plan.why_not else plan.servers,
            "fleet": plan.description,
            "usd_per_month": plan.usd_per_month,
            "cost_ratio": plan.usd_per_hour / change.before.usd_per_hour,
            "keeps_servers": change.keeps_servers,
            **solved(plan),
        }


def _words(change: Change) -> str:
    what = "demand" if change.server is None else f"price of {change.server}"
    return f"{what} x {change.factor:g}"
