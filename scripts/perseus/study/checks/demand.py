"""Check the section `demand`: its models, servers, rates and traces, and whether a fleet (servers
that carry the demand) is possible."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perseus.study.checks.files import trace_problems
from perseus.study.definition import Definition
from perseus.study.demand import Demand, ModelDemand
from perseus.study.hints import meant_or_known
from perseus.study.machine_price import UnpricedError
from perseus.study.presentation import Costs
from perseus.study.price_list import PriceList
from perseus.study.pricing import price_of
from perseus.study.problems import Place, Problems, duplicates
from perseus.study.server import Server

FORMS = "`rps:`, or `trace:`, or all of `low_rps:`, `typical_rps:` and `peak_rps:`"


def problems(study: Definition, folder: Path, prices: PriceList | None) -> Problems:
    """Yield the problems of the demand.

    If the price list cannot be read, `prices` is None, and the function does not check prices.
    """
    if study.demand is None:
        return
    served = {tenant.model for item in study.scenarios for tenant in item.tenants}
    measured = [model.name for model in study.models if model.name in served]
    yield from duplicates("demand.models", [item.name for item in study.demand.models])
    for i, item in enumerate(study.demand.models):
        at: Place = ("demand", "models", i)
        yield from _unknown((*at, "name"), item.name, measured, "a model of a scenario")
        yield from _rate_problems(at, item, study.demand.interval_s, folder)
    used = list(dict.fromkeys(name for item in study.scenarios for name in item.servers))
    for i, name in enumerate(study.demand.servers or ()):
        yield from _unknown(("demand", "servers", i), name, used, "a server of a scenario")
    wanted = study.demand.servers or tuple(used)
    for server in study.servers:
        if server.price is None and server.name in wanted:
            yield (
                ("demand", "servers"),
                f"{server.name!r} has no price, but Perseus plans fleets by their cost (give the"
                " server a `price:`, or name only servers with a price)",
            )
    if not any(rate > 0 for item in study.demand.models for rate in item.levels_rps or (1.0,)):
        yield ("demand", "models"), "no model has a rate above 0 (give at least one model a rate)"
    if set(wanted) <= set(used):
        yield from _fleet_problems(study, study.demand, wanted, prices)


def _fleet_problems(
    study: Definition, demand: Demand, wanted: Sequence[str], prices: PriceList | None
) -> Problems:
    """Yield a problem for each model that no fleet can serve. `wanted` contains the names of the
    servers that the fleet may use."""
    unpriced = {
        server.name
        for server in study.servers
        if prices is not None and not _has_fleet_price(server, demand, prices, study.costs)
    }
    for i, asked in enumerate(demand.models):
        of_model = [
            item
            for item in study.scenarios
            if any(tenant.model == asked.name for tenant in item.tenants)
        ]
        if not of_model or not any(rate > 0 for rate in asked.levels_rps or (1.0,)):
            continue
        searched = {
            name for item in of_model if item.searches_dedicated_peaks for name in item.servers
        }
        usable = [name for name in wanted if name in searched]
        if not usable:
            yield (
                ("demand", "models", i),
                f"no scenario searches a peak of {asked.name!r} on a server that the fleet may use"
                f" (add an experiment `peak` with {asked.name!r} on {' or '.join(wanted)})",
            )
        elif unpriced.issuperset(usable):
            yield (
                ("demand", "models", i),
                f"no server on which a fleet may serve {asked.name!r} has an on-demand price (give"
                f" {' or '.join(usable)} an on-demand price, or a spot price with"
                " `demand.spot.largest_share: 1`)",
            )


def _has_fleet_price(server: Server, demand: Demand, prices: PriceList, costs: Costs) -> bool:
    """Return whether the server has a price that a fleet may pay.

    An on-demand price is enough. If spot servers may carry the whole demand, a spot price is enough
    too. For a server without a valid price, the function returns true, because another check
    reports this server.
    """
    if server.price is None:
        return True
    try:
        price = price_of(server, server.price, prices, costs)
    except UnpricedError:
        return True
    is_only_spot = demand.spot is not None and demand.spot.largest_share == 1
    spot_usd = price.spot_usd_per_hour if is_only_spot else None
    return price.on_demand_usd_per_hour is not None or spot_usd is not None


def _unknown(at: Place, name: str, known: Sequence[str], what: str) -> Problems:
    if name not in known:
        yield at, f"{name!r} is not {what}{meant_or_known(name, known)}"


def _rate_problems(at: Place, item: ModelDemand, interval_s: float, folder: Path) -> Problems:
    three = item.low_rps, item.typical_rps, item.peak_rps
    given = [item.rps is not None, any(rate is not None for rate in three), item.trace is not None]
    if sum(given) != 1:
        yield at, f"has {'no rate' if not any(given) else 'several rates'} (write {FORMS})"
    elif given[1] and None in three:
        yield at, "`low_rps:`, `typical_rps:` or `peak_rps:` is missing (write all three)"
    elif item.levels_rps and list(item.levels_rps) != sorted(item.levels_rps):
        yield at, "must have `low_rps` <= `typical_rps` <= `peak_rps`"
    if item.trace is not None:
        yield from trace_problems((*at, "trace"), item.trace, folder, interval_s=interval_s)
