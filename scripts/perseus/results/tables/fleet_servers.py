"""Make the table `fleet_servers`: the servers of each fleet, and the planned rates of the models on
each server."""

from __future__ import annotations

from collections.abc import Iterator

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.results.columns import MIX, PRICED, of_price, written
from perseus.results.fleets.columns import FLEET, fleet
from perseus.results.fleets.plans import Offer, Plan
from perseus.results.records import Row
from perseus.results.schema import Schema, column
from perseus.results.study_results import StudyResults

DESCRIPTION = (
    "The table lists the servers of each fleet. One row per fleet, type of server, load line and"
    " pricing. The table is empty without a demand."
)
TITLE = "The servers of the fleets"
NOTE = (
    "The table shows the number of servers to buy, the models that each server serves, and the"
    " planned requests/s of each model on one server. The load of a server is the largest of its"
    " models' quotients (requests/s of the model / lower limit of the server's capacity for the"
    " model)."
)
SHOWN = {
    "demand": "level",
    "permitted servers": "strategy",
    "number of servers": "servers",
    "server": "server",
    "instance": "instance",
    "region": "region",
    "pricing": "pricing",
    "USD/h each": "usd_per_hour",
    "load line": "mix",
    "requests/s each": "requests",
    "load": "load",
}
SCHEMA = Schema(
    [
        *FLEET,
        column("servers", WHOLE, "servers",
            "number of servers of the fleet with the type, load line and pricing of this"
            " row", least=1),
        column("server", TEXT, "", "name of the server in the configuration"),
        column("instance", TEXT, "",
            "cloud instance whose price Perseus uses for the server"),
        column("region", TEXT, "", "cloud region of the price"),
        column("pricing", TEXT, "",
            "kind of price: on_demand or spot", choices=("on_demand", "spot")),
        column("usd_per_hour", REAL, "USD/h", "price of one server per hour", null=False),
        *PRICED,
        column("scenario", TEXT, "",
            "name of the scenario (a set of tenants on one server)"),
        column("load_line", TEXT, "",
            "name of the load line on which Perseus measured the capacity of the server"),
        column("mix", TEXT, "", MIX),
        column("requests", TEXT, "requests/s",
            "planned rate of each model on each server of this row, such as a 20, b 10"),
        column("load", REAL, "share",
            "planned load of one server: the largest of its models' quotients (planned rate of the"
            " model / lower limit of the server's capacity for the model)", null=False),
    ],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for plan in results.plans:
        for count, offer in plan.chosen:
            price, measured = results.task.prices[offer.point.server], offer.point.peak.task
            loads = {model: plan.load_rps(offer, model) for model in offer.point.models}
            yield {
                **fleet(results.task.study, plan),
                "servers": count,
                "server": offer.point.server,
                "instance": price.instance,
                "region": price.region,
                "pricing": offer.pricing,
                "usd_per_hour": offer.usd_per_hour,
                **of_price(price),
                "scenario": measured.scenario,
                "load_line": measured.run.name,
                "mix": offer.point.peak.mix,
                "requests": ", ".join(f"{name} {written(rps)}" for name, rps in loads.items()),
                "load": _load(plan, offer),
            }


def _load(plan: Plan, offer: Offer) -> float:
    lower = offer.point.lower_rps
    return max(plan.load_rps(offer, model) / lower[model] for model in offer.point.models)
