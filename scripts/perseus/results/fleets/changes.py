"""Plan the fleet again for other demands and other prices, to show how much the plan depends on the
demand and the prices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perseus.results.fleets.operating_points import OperatingPoint
from perseus.results.fleets.plans import (
    DEDICATED,
    SHARING,
    Plan,
    dedicated_if_as_cheap,
    keeping,
    offered,
    planned,
)
from perseus.results.repeats import key
from perseus.study.tasks.tables import DemandLevel, FleetDemand

DEMAND_FACTORS = (0.5, 0.8, 1.25, 2.0)
PRICE_FACTORS = (0.5, 0.8, 1.25, 2.0)


@dataclass(frozen=True)
class Change:
    """A change of a price or of the demand, with the plans before and after the change.

    If `server` is None, the change multiplies the highest level of the demand by `factor`.
    Otherwise, the change multiplies the price of `server` by `factor`.
    """

    server: str | None
    factor: float
    plan: Plan
    before: Plan

    @property
    def keeps_servers(self) -> bool:
        """True if the fleet stays the same: the numbers of servers with each load line and each
        kind of price."""
        return _fleet(self.plan) == _fleet(self.before)


def changes(plans: Sequence[Plan], demand: FleetDemand | None) -> Iterator[Change]:
    """Apply each change to the two plans for the highest level of the demand: the plan with sharing
    and the dedicated plan. Yield each change with the plan after the change.

    If only one type of server is available, the function changes no price, because the cheapest
    fleet has the same servers at every price.
    """
    for before in plans:
        if demand is None or before.level != demand.levels[-1] or not before.counts:
            continue
        if before.strategy not in (DEDICATED, SHARING):
            continue
        points = list({id(offer.point): offer.point for offer in before.offers}.values())
        for factor in DEMAND_FACTORS:
            rps = {model: factor * rate for model, rate in before.level.rps.items()}
            level = DemandLevel(name=before.level.name, rps=rps)
            yield Change(None, factor, _planned(before, points, level, demand), before)
        servers = list(dict.fromkeys(point.server for point in points))
        for server in servers if len(servers) > 1 else ():
            for factor in PRICE_FACTORS:
                dearer = [_at_price(point, server, factor) for point in points]
                plan = _planned(before, dearer, before.level, demand)
                yield Change(server, factor, plan, before)


def _planned(
    before: Plan, points: Sequence[OperatingPoint], level: DemandLevel, demand: FleetDemand
) -> Plan:
    """Return the cheapest plan after a change. If the fleet of the plan `before` the change is
    still one of the cheapest, the new plan has the same fleet."""
    offers = offered(points, spot=demand.spot is not None)
    plan = planned(before.strategy, offers, level, demand, in_full=False)
    return keeping(dedicated_if_as_cheap(plan, demand), before.counts, demand)


def _at_price(point: OperatingPoint, server: str, factor: float) -> OperatingPoint:
    if point.server != server:
        return point
    usd = {pricing: factor * each for pricing, each in point.usd_per_hour.items()}
    return replace(point, usd_per_hour=usd)


def _fleet(plan: Plan) -> dict[tuple[tuple[str, str], str], int]:
    return {(key(offer.point.peak.task), offer.pricing): count for count, offer in plan.chosen}
