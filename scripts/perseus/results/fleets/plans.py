"""Plan the cheapest fleets for a demand by three strategies: only dedicated servers, sharing
allowed, or only one type of server."""

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
"""The cost of a plan gets a 95 % interval only if the product (offers x models) is at most
MAX_RESAMPLED, because the interval takes RESAMPLES runs of the solver."""
RESAMPLES = 100
NOTHING = np.zeros(1)


@dataclass(frozen=True)
class Offer:
    """A kind of server that a plan may use: its operating point (the rates that one server carries)
    and its kind of price (on_demand or spot)."""

    point: OperatingPoint
    pricing: str

    @property
    def usd_per_hour(self) -> float:
        return self.point.usd_per_hour[self.pricing]


@dataclass(frozen=True)
class Plan:
    """A fleet for one level of the demand.

    `offers` has the kinds of servers that the plan may use, and `counts` (offers,) has the number
    of servers of each kind in the fleet. `counts` is empty if no server is needed, or if Perseus
    finds no fleet. `why_not` is the reason why Perseus finds no fleet; empty with a fleet. Spot
    servers carry at most the share `largest_spot_share` of a model's demand.

    `usd_draws` (draws,) has the cost of the cheapest fleet in USD/h for each draw of the
    capacities. Entry d comes from the same joint draw in the plans of all strategies. `usd_draws`
    is empty if the plan is larger than MAX_RESAMPLED, if no fleet carries the demand in a draw, or
    if a capacity has no upper limit.
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
        """Text such as "2 x (a 1 : 1 b) + 1 x (b)". If the offers have several servers, kinds of
        price or scenarios, the text also names the server, kind of price or scenario."""
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
        """Return the number of servers of the plan that serve a model. Servers with the kind of
        price `but` do not count."""
        return sum(n for n, each in self.by_model.get(model, ()) if each.pricing != but)

    def capacity_rps(self, model: str) -> float:
        """Return the capacity of the fleet for a model in requests/s: the sum of the lower limits
        of the capacities of all servers that serve the model."""
        return sum(n * each.point.lower_rps[model] for n, each in self.by_model.get(model, ()))

    def spot_share(self, model: str) -> float:
        """Return the share of a model's demand that goes to spot servers."""
        spot = [(n, each) for n, each in self.by_model[model] if each.pricing == SPOT]
        rps = sum(n * self.load_rps(each, model) for n, each in spot)
        return rps / self.level.rps[model]

    def load_rps(self, offer: Offer, model: str) -> float:
        """Return the planned rate of a model, in requests/s, on each server of an offer.

        The plan divides the demand for the model among its servers in proportion to their
        capacities, with one limit: all spot servers together get at most the share
        `largest_spot_share`. The other servers then get the rest.
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
        """Probability that the servers carry the demand for every model: the share of the joint
        draws of the capacities in which the servers carry this demand."""
        if not self.counts:
            return np.nan if self.why_not else 1.0
        enough = [
            sum((n * each.point.draws_rps[model] for n, each in self.by_model[model]), NOTHING)
            >= self.level.rps[model] * (1 - 1e-9)
            for model in self.models
        ]
        return float(np.mean(np.all(enough, axis=0)))


def plans(points: Sequence[OperatingPoint], demand: FleetDemand | None) -> tuple[Plan, ...]:
    """For each level of the demand, return one plan per strategy; empty without a demand.

    There is no plan for the strategy ONE_TYPE if the study has offers of only one type of server.
    """
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
    """Return the plan or, if dedicated servers cost no more, the plan with dedicated servers.

    If the costs are equal, dedicated servers are better, because their models do not disturb each
    other.
    """
    if not any(offer.point.is_shared for _, offer in plan.chosen):
        return plan
    alone = [offer for offer in plan.offers if not offer.point.is_shared]
    dedicated = planned(DEDICATED, alone, plan.level, demand, in_full=False)
    return _sharing_if_cheaper(plan, dedicated, demand)


def _sharing_if_cheaper(sharing: Plan, dedicated: Plan, demand: FleetDemand) -> Plan:
    """Return the plan `sharing` or, if dedicated servers cost no more, the plan `sharing` with the
    servers of the plan `dedicated`."""
    if not dedicated.counts:
        return sharing
    if sharing.why_not:  # the solver found no fleet with sharing in time
        return replace(dedicated, strategy=sharing.strategy)
    counts = iter(dedicated.counts)
    same = tuple(0 if offer.point.is_shared else next(counts) for offer in sharing.offers)
    return keeping(sharing, same, demand)


def offered(points: Sequence[OperatingPoint], *, spot: bool) -> list[Offer]:
    """Return one offer for each operating point with an on-demand price. If `spot` is true, also
    return one offer for each operating point with a spot price."""
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
    """Return the plan with the cheapest fleet. The plan assumes that each server carries only the
    lower limit of its capacity.

    If `in_full` is true, the function does two more things. If several fleets are the cheapest, the
    function chooses the fleet with the most spare capacity. The function also computes the cost for
    each draw of the capacities, unless the plan is larger than MAX_RESAMPLED or a capacity has no
    upper limit.
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
    """Return the plan with the numbers of servers `counts`. If these servers do not carry the
    demand, or cost more than the plan, return the plan without a change."""
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

    The result is empty if no fleet carries the demand in one of the draws.
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
