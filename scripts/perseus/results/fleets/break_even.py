"""Compute from which demand shared servers cost less than dedicated servers
(docs/explanation/fleets.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, groupby, pairwise
from typing import TypeAlias

import numpy as np

from perseus.peak.stats import Floats
from perseus.results.fleets.cheapest import TOLERANCE
from perseus.results.fleets.operating_points import OperatingPoint, of_models
from perseus.results.fleets.servers_needed import (
    are_few_ways,
    fewest,
    needed_apart,
    needed_at_each,
)
from perseus.study.setting import configured
from perseus.study.tasks.tables import FleetDemand

MIN_RPS = 1.0
MIN_SERVERS = 0.01
MAX_SERVERS = 10
STEPS = 121
"""Number of demands at which Perseus first compares costs. Each demand is larger than the previous
demand by the same factor. Then Perseus adds demands (HALVINGS)."""

HALVINGS = 4
"""Number of times that Perseus adds a demand between two successive demands with different cheapest
servers. The added demand is the geometric mean of the two demands. The demands at which the
cheapest servers change (table `crossings`) then have an error below one percent."""

RELIABLE = 0.9
"""Perseus calls a saving reliable only if its probability is at least RELIABLE."""

DRAWS = 100
"""Number of draws of the capacities from which Perseus computes the probability of a saving."""


@dataclass(frozen=True)
class Question:
    """A group of models for which Perseus compares costs while the total demand rises.

    `shares` has the share of each model in the total demand. The shares stay constant.
    """

    models: tuple[str, ...]
    shares: tuple[float, ...]

    @cached_property
    def description(self) -> str:
        """Text such as "a 76%, b 24%", with enough decimals that no share is rounded to 0."""
        digits = next(n for n in count() if round(100 * min(self.shares), n) > 0)
        pairs = zip(self.models, self.shares, strict=True)
        return ", ".join(f"{model} {share:.{digits}%}" for model, share in pairs)


@dataclass(frozen=True)
class Option:
    """Servers of one type that carry a demand: dedicated and shared servers if `shared` is true,
    otherwise only dedicated servers."""

    server: str
    shared: bool

    @property
    def description(self) -> str:
        return f"{self.server}, {'sharing allowed' if self.shared else 'dedicated'}"


@dataclass(frozen=True)
class Cost:
    """Cost of the servers of one option that carry one demand.

    `servers` and `usd_per_hour` assume that each server carries only the lower limit of its
    capacity. `usd_at_estimates` (in USD/h) assumes that each server carries the estimate of its
    capacity. `probability_of_saving` is the share of the joint draws of the capacities in which
    shared servers cost less than the cheapest dedicated servers; NaN if unknown. `is_bounded` is
    false if the capacity of a dedicated server has no upper limit.
    """

    question: Question
    option: Option
    total_rps: float
    servers: int
    usd_per_hour: float
    usd_at_estimates: float
    probability_of_saving: float = np.nan
    is_bounded: bool = True

    @property
    def has_probability(self) -> bool:
        return not np.isnan(self.probability_of_saving)


@dataclass(frozen=True)
class DemandRange:
    """A range of total demands in which the same option is the cheapest.

    `first` and `last` are the costs at the lowest and at the highest demand of the range.

    At each demand of the range, Perseus computes two savings relative to the cheapest dedicated
    servers: at the lower limits of the capacities, and at the estimates. `least_saving` and
    `most_saving` are the smallest and the largest saving in the range. `least_probability` is the
    lowest probability of a saving; NaN if unknown, or if dedicated servers are the cheapest.
    `is_reliable` is false if shared servers are the cheapest, but their saving is not reliable (see
    `demand_ranges`). If no dedicated servers are available, the savings are NaN, and `is_reliable`
    is true.
    """

    first: Cost
    last: Cost
    least_saving: float
    most_saving: float
    least_probability: float
    is_reliable: bool

    @property
    def option(self) -> Option:
        return self.first.option


Best: TypeAlias = tuple[Cost, tuple[float, ...], bool]
"""Three values for one demand: the cost of the cheapest option; its savings relative to the
cheapest dedicated servers (at the lower limits and at the estimates of the capacities); and whether
the choice of this option is reliable (see `demand_ranges`)."""


def questions(points: Sequence[OperatingPoint], demand: FleetDemand | None) -> list[Question]:
    """Return the groups of models for which Perseus compares costs, each with the shares of the
    models in the total demand.

    If the study has a demand, the models of the demand form the only group. Their shares come from
    the highest level of the demand.

    If the study has no demand, the models of each shared scenario form a group. Each model with
    dedicated peaks on several servers also forms a group of its own. The shares are such that each
    model needs the same number of dedicated servers. The function leaves out a group if one of its
    models has no dedicated peak. The models of a group are in the order of the configuration.
    """
    if demand is not None:
        top = demand.levels[-1]
        asked = {model: top.rps[model] for model in top.models}
        return [_question(asked)] if asked else []
    order = list(dict.fromkeys(model for point in points for model in point.models))
    shared = [tuple(sorted(p.models, key=order.index)) for p in points if p.is_shared]
    several = [p.models for p in points if not p.is_shared and _servers_of(points, p.models) > 1]
    alone = {p.models[0]: p.rates_rps[p.models[0]] for p in reversed(points) if not p.is_shared}
    return [
        _question({model: alone[model] for model in models})
        for models in dict.fromkeys((*shared, *several))
        if all(model in alone for model in models)
    ]


def _question(rps: dict[str, float]) -> Question:
    total = sum(rps.values())
    return Question(tuple(rps), tuple(rate / total for rate in rps.values()))


def _servers_of(points: Sequence[OperatingPoint], models: tuple[str, ...]) -> int:
    """Return how many servers of the configuration have an operating point for exactly these
    models. The settings of a server in a grid count as one server."""
    return len({configured(each.server) for each in points if each.models == models})


def costs(points: Sequence[OperatingPoint], demand: FleetDemand | None) -> Iterator[Cost]:
    """Yield the cost of each option for each group of models, at STEPS or more demands.

    If the study has a demand, each server keeps the configured headroom free, and each model has
    at least the configured number of servers. The function leaves out servers without an on-demand
    price.
    """
    points = [point for point in points if "on_demand" in point.usd_per_hour]
    with_each = 1 if demand is None else demand.min_servers
    for question in questions(points, demand):
        mine = list(of_models(points, question.models))
        if demand is not None:
            mine = [each.leaving(demand.headroom) for each in mine if each.server in demand.servers]
        yield from _refined(question, mine, with_each)


def _refined(
    question: Question, points: Sequence[OperatingPoint], with_each: int
) -> Iterator[Cost]:
    """Yield the costs of one group of models, sorted by option and demand.

    Between two demands with different cheapest servers, the function adds demands. It adds none if
    the probability of a saving is unknown for all costs.
    """
    found = list(_costs(question, points, with_each, demands_rps(question, points)))
    for _ in range(HALVINGS if any(cost.has_probability for cost in found) else 0):
        found += _costs(question, points, with_each, _between_changes(found))
    options = list(dict.fromkeys(cost.option for cost in found))
    yield from sorted(found, key=lambda cost: (options.index(cost.option), cost.total_rps))


def _between_changes(of: Sequence[Cost]) -> list[float]:
    """For each pair of successive demands with different cheapest servers, return the geometric
    mean of the two demands."""
    found = list(_best_of_each(of))
    return [
        float(np.sqrt(before[0].total_rps * after[0].total_rps))
        for before, after in pairwise(found)
        if _kind(before) != _kind(after)
    ]


def _costs(
    question: Question,
    points: Sequence[OperatingPoint],
    with_each: int,
    demands: Sequence[float],
) -> Iterator[Cost]:
    """Yield the costs of one group of models at the total demands `demands` in requests/s.

    `points` has the operating points that serve only models of this group.
    """
    able = {
        option: chosen
        for server in dict.fromkeys(each.server for each in points)
        for option in (Option(server, False), Option(server, True))
        if demands and (chosen := _chosen(question, option, points))
    }
    is_open = {
        option: any(each.peak.open_above for each in chosen) for option, chosen in able.items()
    }
    dedicated = [option for option in able if not option.shared]
    is_bounded = not any(is_open[option] for option in dedicated)
    drawn = {
        option
        for option, chosen in able.items()
        if dedicated
        and is_bounded
        and not is_open[option]
        and (not option.shared or _are_few(question, chosen, with_each))
    }
    servers = {
        option: _servers(question, option, chosen, demands, with_each, option in drawn)
        for option, chosen in able.items()
    }
    usd = {option: _price(chosen) * servers[option][2:] for option, chosen in able.items()}
    alone = [usd[option] for option in dedicated]
    for option, chosen in able.items():
        price, saves = _price(chosen), np.full(len(demands), np.nan)
        if option.shared and option in drawn:
            saves = _probability_of_less(usd[option], np.min(alone, axis=0))
        at_each = zip(demands, *servers[option][:2].tolist(), saves.tolist(), strict=True)
        for total_rps, must, may, chance in at_each:
            usd_per_hour = must * price, may * price
            yield Cost(question, option, total_rps, int(must), *usd_per_hour, chance, is_bounded)


def _are_few(question: Question, chosen: Sequence[OperatingPoint], with_each: int) -> bool:
    hosts = np.array([[model in each.models for each in chosen] for model in question.models])
    return are_few_ways(len(chosen), fewest(hosts, with_each))


def demands_rps(question: Question, points: Sequence[OperatingPoint]) -> list[float]:
    """Return the STEPS demands at which Perseus first compares costs, in ascending order; empty if
    a model has no operating point.

    If each server served one model, the highest demand would fill MAX_SERVERS servers. The lowest
    demand would fill the share MIN_SERVERS of one server, but is at most MIN_RPS. The capacity of
    these servers is the largest lower limit for the model on any server, dedicated or shared,
    because a model may have no dedicated peak.
    """
    most_rps: dict[str, float] = {}
    for model, rps in (item for each in points for item in each.lower_rps.items()):
        most_rps[model] = max(rps, most_rps.get(model, 0.0))
    if not all(most_rps.get(model) for model in question.models):
        return []
    pairs = zip(question.models, question.shares, strict=True)
    full = 1 / sum(share / most_rps[model] for model, share in pairs)
    least = min(MIN_RPS, MIN_SERVERS * full)
    return [float(rps) for rps in np.geomspace(least, MAX_SERVERS * full, STEPS)]


def _chosen(
    question: Question, option: Option, points: Sequence[OperatingPoint]
) -> list[OperatingPoint]:
    """Return the operating points that an option may use.

    The result is empty if these operating points do not serve all models. The result is also empty
    if the option may use shared servers, but no operating point is shared.
    """
    chosen = [
        each
        for each in points
        if each.server == option.server and (option.shared or not each.is_shared)
    ]
    hosted = {model for each in chosen for model, rps in each.lower_rps.items() if rps > 0}
    can = hosted >= set(question.models) and option.shared == any(p.is_shared for p in chosen)
    return chosen if can else []


def _servers(
    question: Question,
    option: Option,
    chosen: Sequence[OperatingPoint],
    demands_rps: Sequence[float],
    with_each: int,
    is_drawn: bool,
) -> Floats:
    """For each demand, return the number of servers that an option needs.

    The result has one column per demand. The first row is for the lower limits of the capacities,
    and the second row for the estimates. If `is_drawn` is true, one more row follows for each joint
    draw of the capacities. In the rows of draws, a demand with too many combinations of servers has
    NaN.
    """
    models, shares = question.models, np.array(question.shares)
    zeros = np.zeros(DRAWS)
    sets = [
        [[each.lower_rps.get(model, 0.0) for each in chosen] for model in models],
        [[each.rates_rps.get(model, 0.0) for each in chosen] for model in models],
    ]
    rates = np.array(sets)
    if is_drawn:
        drawn = [[each.draws_rps.get(of, zeros)[:DRAWS] for each in chosen] for of in models]
        rates = np.concatenate([rates, np.moveaxis(np.array(drawn), 2, 0)])
    if not option.shared:
        return needed_apart(rates, shares, demands_rps, with_each).astype(float)
    return needed_at_each(rates, shares, demands_rps, with_each, certain=len(sets))


def _price(chosen: Sequence[OperatingPoint]) -> float:
    return chosen[0].usd_per_hour["on_demand"]


def _probability_of_less(usd: Floats, other_usd: Floats) -> Floats:
    """For each demand, return the probability that `usd` is less than `other_usd`; NaN if a cost is
    unknown in one of the draws.

    Both arrays have the costs in each joint draw of the capacities, shape (draws, demands).
    """
    known = np.isfinite(usd) & np.isfinite(other_usd)
    less = (usd < other_usd * (1 - TOLERANCE)).mean(axis=0)
    return np.where(known.all(axis=0), less, np.nan)


def demand_ranges(of: Sequence[Cost]) -> Iterator[DemandRange]:
    """For each group of models, yield the ranges of total demand in which the cheapest option is
    the same.

    The function compares costs at the lower limits of the capacities, as the plan of a fleet does.
    If shared and dedicated servers cost the same, the function chooses dedicated servers, because
    their tenants do not disturb each other.

    A saving of shared servers is reliable if shared servers are cheaper (1) at the lower limits,
    (2) at the estimates, and (3), if the draws are known, in at least the share RELIABLE of the
    draws. Condition 1 alone proves little: the dedicated peak may only be less certain than the
    peak of the shared server. If the capacity of a dedicated server has no upper limit, no saving
    is reliable, because dedicated servers may be cheaper than at the estimates.
    """
    for _, asked in groupby(of, key=lambda cost: cost.question):
        for (*_, is_reliable), run in groupby(_best_of_each(list(asked)), key=_kind):
            found = list(run)
            savings = [saving for _, both, _ in found for saving in both]
            yield DemandRange(
                found[0][0],
                found[-1][0],
                min(savings, default=np.nan),
                max(savings, default=np.nan),
                float(np.min([cost.probability_of_saving for cost, *_ in found])),
                is_reliable,
            )


def _best_of_each(of: Sequence[Cost]) -> Iterator[Best]:
    by_demand = sorted(of, key=lambda cost: cost.total_rps)
    for _, same in groupby(by_demand, key=lambda cost: cost.total_rps):
        yield _best(list(same))


def _kind(best: Best) -> tuple[Option, bool, bool]:
    cost, _, is_reliable = best
    return cost.option, cost.has_probability, is_reliable


def _best(same: Sequence[Cost]) -> Best:
    """Return the cheapest option at one demand, given the costs of all options.

    If options with shared servers have a reliable saving, the function chooses the cheapest of
    these options.
    """
    alone = [cost for cost in same if not cost.option.shared]
    if not alone:
        return min(same, key=lambda cost: cost.usd_per_hour), (), True
    sure = min(cost.usd_per_hour for cost in alone)
    likely = min(cost.usd_at_estimates for cost in alone)
    cheaper = [
        cost for cost in same if cost.option.shared and cost.usd_per_hour < sure * (1 - TOLERANCE)
    ]
    reliable = [
        cost
        for cost in cheaper
        if cost.is_bounded
        and cost.usd_at_estimates < likely * (1 - TOLERANCE)
        and not cost.probability_of_saving < RELIABLE  # NaN is an unknown probability
    ]
    best = min(reliable or cheaper or alone, key=lambda cost: cost.usd_per_hour)
    savings = 1 - best.usd_per_hour / sure, 1 - best.usd_at_estimates / likely
    return best, savings, bool(reliable) or not cheaper
