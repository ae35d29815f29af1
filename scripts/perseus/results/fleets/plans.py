"""Plan fleets for a demand by three strategies: dedicated servers only, sharing allowed, or one
type of server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from perseus.peak.stats import Floats
from perseus.results.fleets.cheapest import (
    OPTIMAL,
    TOLERANCE,
    NoFleetError,
    Offers,
    Wanted,
    carries,
    cheapest,
    with_most_spare_capacity,
)
from perseus.results.fleets.operating_points import OperatingPoint, of_models
from perseus.study.tasks.tables import DemandLevel, FleetDemand

DEDICATED, SHARING, ONE_TYPE = "dedicated", "sharing allowed", "one type of server"
SPOT = "spot"
HOURS_PER_MONTH = 730
MAX_RESAMPLED = 400
"""The cost of a plan gets a 95 % interval only if the plan has at most this size (offers x models)
and each capacity has an upper limit."""
RESAMPLES = 100
NOTHING = np.zeros(1)


@dataclass(frozen=True)
class Offer:
    """An available kind of server: its operating point (rates that one server carries) and its
    pricing (on demand or spot)."""

    point: OperatingPoint
    pricing: str

    @property
    def usd_per_hour(self) -> float:
        return self.point.usd_per_hour[self.pricing]


@dataclass(frozen=True)
class Plan:
    """A fleet for one level of the demand. For each offer in `offers`, `counts` (offers,) has the
    number of servers in the fleet.

    `counts` is empty if no server is needed, or if Perseus finds no fleet; in the second case,
    `why_not` is the reason. `usd_draws` (draws,) has the cost of the cheapest fleet in USD/h for
    each draw of the capacities. In the plans of all strategies, entry d of `usd_draws` comes from
    the same joint draw of the capacities. If the size of the plan (offers x models) exceeds
    MAX_RESAMPLED, or if a capacity has no upper limit, `usd_draws` is empty. Spot servers carry at
    most the share `largest_spot_share` of a model's demand.
    """

    level: DemandLevel
    strategy: str
    offers: tuple[Offer, ...]
    largest_spot_share: float
    counts: tuple[int, ...] = ()
    usd_per_hour: float = np.nan
    gap: float = np.nan
    status: str = ""
    usd_draws: Floats = field(default_factory=lambda: np.empty(0))
    why_not: str = ""

    @property
    def models(self) -> tuple[str, ...]:
        return self.level.models

    @cached_property
    def chosen(self) -> list[tuple[int, Offer]]:
        """Offers that the plan uses, each with its number of servers."""
        pairs = zip(self.counts, self.offers, strict=True) if self.counts else ()
        return [(count, offer) for count, offer in pairs if count]

    @cached_property
    def by_model(self) -> dict[str, list[tuple[int, Offer]]]:
        """For each model, the offers in `chosen` whose servers serve the model."""
        found: dict[str, list[tuple[int, Offer]]] = {}
        for count, offer in self.chosen:
            for model in offer.point.models:
                found.setdefault(model, []).append((count, offer))
        return found

    @property
    def servers(self) -> int:
        return sum(self.counts)

    @property
    def usd_per_month(self) -> float:
        return self.usd_per_hour * HOURS_PER_MONTH

    @property
    def description(self) -> str:
        """Text such as "2 x (a 1 : 1 b) + 1 x (b)". The text names the server, the pricing or the
        scenario of an offer only if several are possible."""
        servers = {offer.point.server for offer in self.offers}
        pricings = {offer.pricing for offer in self.offers}
        scenarios = Counter(on_server for on_server, _ in {_mix(each) for each in self.offers})

        def offer_text(offer: Offer) -> str:
            on_server, scenario = _mix(offer)
            on = f" on {offer.point.server}" if len(servers) > 1 else ""
            at = f", {offer.pricing.replace('_', '-')}" if len(pricings) > 1 else ""
            which = f", as in {scenario}" if scenarios[on_server] > 1 else ""
            return f"{offer.point.peak.mix}{on}{at}{which}"

        return " + ".join(f"{count} x ({offer_text(offer)})" for count, offer in self.chosen)

    def servers_with(self, model: str, but: str = "") -> int:
        """Return the number of servers of the plan that serve a model, except servers with the
        pricing `but`."""
        return sum(n for n, each in self.by_model.get(model, ()) if each.pricing != but)

    def capacity_rps(self, model: str) -> float:
        """Return the capacity of the fleet for a model in requests/s: the sum of the lower limits
        of all servers that serve the model."""
        return sum(n * each.point.lower_rps[model] for n, each in self.by_model.get(model, ()))

    def spot_share(self, model: str) -> float:
        """Return the share of a model's demand that goes to spot servers."""
        spot = [(n, each) for n, each in self.by_model[model] if each.pricing == SPOT]
        rps = sum(n * self.load_rps(each, model) for n, each in spot)
        return rps / self.level.rps[model]

    def load_rps(self, offer: Offer, model: str) -> float:
        """Return the rate of a model, in requests/s, on each server of an offer.

        Each server gets a part of the demand in proportion to its capacity. All spot servers
        together get at most the share `largest_spot_share` of the demand.
        """
        mine = offer.point.lower_rps.get(model, 0.0)
        if not (mine and (carried := self.capacity_rps(model))):
            return 0.0
        spot = sum(
            n * each.point.lower_rps[model]
            for n, each in self.by_model[model]
            if each.pricing == SPOT
        )
        on_spot = min(spot / carried, self.largest_spot_share)
        share, alike = (on_spot, spot) if offer.pricing == SPOT else (1 - on_spot, carried - spot)
        return self.level.rps.get(model, 0.0) * share * mine / alike

    @property
    def probability_enough(self) -> float:
        """Probability that the servers carry the demand for every model, from joint draws of their
        capacities."""
        if not self.counts:
            return np.nan if self.why_not else 1.0
        enough = [
            sum((n * each.point.draws_rps[model] for n, each in self.by_model[model]), NOTHING)
            >= self.level.rps[model] * (1 - 1e-9)
            for model in self.models
        ]
        return float(np.mean(np.all(enough, axis=0)))


def plans(points: Sequence[OperatingPoint], demand: FleetDemand | None) -> tuple[Plan, ...]:
    """For each level of the demand, return one plan per strategy. Without a demand, the result is
    empty."""
    if demand is None:
        return ()
    mine = [each for each in points if each.server in demand.servers]
    return tuple(plan for level in demand.levels for plan in _of_level(mine, level, demand))


def _of_level(
    points: Sequence[OperatingPoint], level: DemandLevel, demand: FleetDemand
) -> Iterator[Plan]:
    offers = offered(list(of_models(points, level.models)), spot=demand.spot is not None)
    alone = [offer for offer in offers if not offer.point.is_shared]
    dedicated = planned(DEDICATED, alone, level, demand)
    yield dedicated
    yield _sharing_if_cheaper(planned(SHARING, offers, level, demand), dedicated, demand)
    servers = list(dict.fromkeys(each.point.server for each in offers))
    if len(servers) > 1:
        of_servers = [
            planned(ONE_TYPE, [each for each in offers if each.point.server == name], level, demand)
            for name in servers
        ]
        if able := [plan for plan in of_servers if not plan.why_not]:
            cheapest_type = min(able, key=lambda plan: plan.usd_per_hour)
            yield dedicated_if_as_cheap(cheapest_type, demand)
            return
        pairs = zip(servers, of_servers, strict=True)
        reasons = "; ".join(f"{name}: {plan.why_not}" for name, plan in pairs)
        why_not = f"no single type of server carries the demand ({reasons})"
        yield replace(of_servers[0], offers=tuple(offers), why_not=why_not)


def dedicated_if_as_cheap(plan: Plan, demand: FleetDemand) -> Plan:
    """If dedicated servers among the offers of the plan are as cheap as the plan, return the plan
    with these servers; else return the plan unchanged."""
    if not any(offer.point.is_shared for _, offer in plan.chosen):
        return plan
    alone = [offer for offer in plan.offers if not offer.point.is_shared]
    dedicated = planned(DEDICATED, alone, plan.level, demand, in_full=False)
    return _sharing_if_cheaper(plan, dedicated, demand)


def _sharing_if_cheaper(sharing: Plan, dedicated: Plan, demand: FleetDemand) -> Plan:
    """Return the plan with sharing. If the dedicated plan is as cheap as the plan with sharing, the
    result has the servers of the dedicated plan. Models on dedicated servers do not disturb each
    other."""
    if not dedicated.counts:
        return sharing
    if sharing.why_not:  # the solver found no fleet with sharing in time
        return replace(dedicated, strategy=sharing.strategy)
    counts = iter(dedicated.counts)
    same = tuple(0 if offer.point.is_shared else next(counts) for offer in sharing.offers)
    return keeping(sharing, same, demand)


def offered(points: Sequence[OperatingPoint], *, spot: bool) -> list[Offer]:
    """Return an offer for each operating point at its on-demand price and, if `spot` is true, also
    an offer at its spot price."""
    pricings = ("on_demand", SPOT) if spot else ("on_demand",)
    return [
        Offer(point, pricing)
        for point in points
        for pricing in pricings
        if pricing in point.usd_per_hour
    ]


def planned(
    strategy: str,
    offers: Sequence[Offer],
    level: DemandLevel,
    demand: FleetDemand,
    *,
    in_full: bool = True,
) -> Plan:
    """Return the cheapest fleet at the lower limits of the capacities.

    If `in_full` is true and several fleets are the cheapest, the function chooses the fleet with
    the most spare capacity. If `in_full` is true and the size of the plan (offers x models) is at
    most MAX_RESAMPLED, the function also computes the cost for each draw of the capacities, unless
    a capacity has no upper limit.
    """
    models = level.models
    plan = Plan(level, strategy, tuple(offers), _largest_spot_share(demand))
    if not models:
        return replace(plan, usd_per_hour=0.0, gap=0.0, status=OPTIMAL)
    if missing := _missing(models, offers):
        why_not = (
            "none of the permitted servers has both a price and a known lower limit of its capacity"
            f" for {', '.join(missing)}"
        )
        return replace(plan, why_not=why_not)
    on_offer, wanted = _programme(level, offers, demand)
    try:
        found = cheapest(on_offer, wanted)
    except NoFleetError as error:
        return replace(plan, why_not=str(error))
    if in_full:
        found = with_most_spare_capacity(on_offer, wanted, found)
    is_bounded = not any(offer.point.peak.open_above for offer in offers)
    resample = in_full and is_bounded and len(offers) * len(models) <= MAX_RESAMPLED
    return replace(
        plan,
        counts=tuple(int(n) for n in found.counts),
        usd_per_hour=found.usd_per_hour,
        gap=found.gap,
        status=found.status,
        usd_draws=resampled(models, offers, wanted) if resample else plan.usd_draws,
    )


def keeping(plan: Plan, counts: tuple[int, ...], demand: FleetDemand) -> Plan:
    """If the servers `counts` carry the demand and cost no more than the plan, return the plan with
    these servers; else return the plan unchanged."""
    if plan.why_not:
        return plan
    on_offer, wanted = _programme(plan.level, plan.offers, demand)
    usd, most = float(on_offer.usd_per_hour @ counts), plan.usd_per_hour * (1 + TOLERANCE)
    does = usd <= most and carries(np.array(counts), on_offer, wanted)
    return replace(plan, counts=counts, usd_per_hour=usd) if does else plan


def _largest_spot_share(demand: FleetDemand) -> float:
    return demand.spot.largest_share if demand.spot else 0.0


def _programme(
    level: DemandLevel, offers: Sequence[Offer], demand: FleetDemand
) -> tuple[Offers, Wanted]:
    models, most = level.models, _largest_spot_share(demand)
    lower = np.array([[each.point.lower_rps.get(name, 0.0) for each in offers] for name in models])
    asked = np.array([level.rps[name] for name in models])
    return _offers(lower, offers), Wanted(asked, demand.headroom, demand.min_servers, most)


def resampled(models: Sequence[str], offers: Sequence[Offer], wanted: Wanted) -> Floats:
    """For each of RESAMPLES joint draws of the capacities, return the cost of the cheapest fleet in
    USD/h.

    If there is a draw in which no fleet carries the demand, the result is empty.
    """
    drawn = np.array(
        [
            [each.point.draws_rps.get(name, np.zeros(RESAMPLES))[:RESAMPLES] for each in offers]
            for name in models
        ]
    )
    try:
        fleets = [cheapest(_offers(rates, offers), wanted) for rates in np.moveaxis(drawn, 2, 0)]
    except NoFleetError:
        return np.empty(0)
    return np.array([fleet.usd_per_hour for fleet in fleets])


def _offers(rates_rps: Floats, offers: Sequence[Offer]) -> Offers:
    usd = np.array([each.usd_per_hour for each in offers])
    return Offers(rates_rps, usd, np.array([each.pricing == SPOT for each in offers]))


def _mix(offer: Offer) -> tuple[tuple[str, str], str]:
    return (offer.point.peak.mix, offer.point.server), offer.point.peak.task.scenario


def _missing(models: Sequence[str], offers: Sequence[Offer]) -> list[str]:
    hosted = {name for each in offers for name in each.point.models}
    return [name for name in models if name not in hosted]
