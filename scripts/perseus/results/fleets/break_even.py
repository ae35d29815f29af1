"""Costs over the demand: where sharing pays, and which server is the cheapest (docs/method.md,
"Demand and fleets")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, groupby
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from perseus.peak.stats import Floats
from perseus.results.fleets.cheapest import TOLERANCE
from perseus.results.fleets.operating_points import OperatingPoint, of_models
from perseus.study.setting import configured
from perseus.study.tasks.tables import FleetDemand

LEAST_RPS = 1.0
MOST_SERVERS = 10
STEPS, MOST_EXACT = 121, 40
"""Demands from one request/s to what fills ten dedicated servers, in equal ratios."""

SOLVE_S = 1.0
"""For one number of servers; what was found until then they carry, if perhaps not the most."""

MOST_WAYS = 20_000
"""To divide servers among operating points: so many are all tried, which is faster than to solve
an integer programme; of two models with two mixes, those of any number of servers."""


@dataclass(frozen=True)
class Question:
    """Models whose demand rises in proportion: `shares` of it, in their order, sum to 1."""

    models: tuple[str, ...]
    shares: tuple[float, ...]

    @property
    def words(self) -> str:
        pairs = zip(self.models, self.shares, strict=True)
        return ", ".join(f"{model} {share:.0%}" for model, share in pairs)


@dataclass(frozen=True)
class Option:
    """Servers of one type, dedicated to a model each, or shared where that is cheaper."""

    server: str
    shared: bool

    @property
    def words(self) -> str:
        return f"{self.server}, {'sharing allowed' if self.shared else 'dedicated'}"


@dataclass(frozen=True)
class Cost:
    """Of whole servers of one option at a demand, at the lower limits of what they carry: what must
    be bought to be sure; and at the estimates."""

    question: Question
    option: Option
    total_rps: float
    servers: int
    usd_per_hour: float
    usd_at_estimates: float


@dataclass(frozen=True)
class Stretch:
    """Demands from one to another at which one option is the cheapest, and what it saves there
    against the cheapest dedicated servers, as shares of their cost: the least and the most, at the
    lower limits and at the estimates. `first` and `last` are its costs at its ends."""

    first: Cost
    last: Cost
    least_saving: float
    most_saving: float

    @property
    def option(self) -> Option:
        return self.first.option


def questions(points: Sequence[OperatingPoint], demand: FleetDemand | None) -> list[Question]:
    """Of the demand, in its proportion; else of the models of each shared scenario, each as many of
    its dedicated servers, and of each model alone where several servers have it."""
    if demand is not None:
        top = demand.levels[-1]
        asked = {model: top.rps[model] for model in top.models}
        return [_question(asked)] if asked else []
    shared = dict.fromkeys(tuple(sorted(set(p.models))) for p in points if p.is_shared)
    several = dict.fromkeys(
        p.models for p in points if not p.is_shared and _servers_of(points, p.models) > 1
    )
    alone = {p.models[0]: p.rates_rps[p.models[0]] for p in reversed(points) if not p.is_shared}
    return [
        _question({model: alone[model] for model in models})
        for models in (*shared, *several)
        if all(model in alone for model in models)
    ]


def _question(rps: dict[str, float]) -> Question:
    total = sum(rps.values())
    return Question(tuple(rps), tuple(rate / total for rate in rps.values()))


def _servers_of(points: Sequence[OperatingPoint], models: tuple[str, ...]) -> int:
    """As configured: grids, which vary one, have recommendations of their own."""
    return len({configured(each.server) for each in points if each.models == models})


def costs(points: Sequence[OperatingPoint], demand: FleetDemand | None) -> Iterator[Cost]:
    """Of all questions, all options that can answer them, at STEPS demands."""
    for question in questions(points, demand):
        mine = [
            each
            for each in of_models(points, question.models)
            if demand is None or each.server in demand.servers
        ]
        options = [
            Option(server, shared)
            for server in dict.fromkeys(each.server for each in mine)
            for shared in (False, True)
        ]
        for option in options:
            yield from _costs(question, option, mine)


def demands_rps(question: Question, points: Sequence[OperatingPoint]) -> list[float]:
    """From one request/s to ten dedicated servers' worth, of the server that carries the most."""
    alone = [each for each in points if not each.is_shared]
    full = []
    for server in dict.fromkeys(each.server for each in alone):
        best = {
            each.models[0]: each.lower_rps[each.models[0]]
            for each in alone
            if each.server == server
        }
        if all(model in best for model in question.models):
            pairs = zip(question.models, question.shares, strict=True)
            full.append(1 / sum(share / best[model] for model, share in pairs))
    if not full:
        return []
    most = max(MOST_SERVERS * max(full), 2 * LEAST_RPS)
    return [float(rps) for rps in np.geomspace(LEAST_RPS, most, STEPS)]


def _costs(question: Question, option: Option, points: Sequence[OperatingPoint]) -> Iterator[Cost]:
    """Of one option at all demands; nothing where it lacks a model."""
    chosen = [
        each
        for each in points
        if each.server == option.server and (option.shared or not each.is_shared)
    ]
    hosted = {model for each in chosen for model, rps in each.lower_rps.items() if rps > 0}
    if not hosted >= set(question.models) or option.shared != any(p.is_shared for p in chosen):
        return
    usd = chosen[0].usd_per_hour["on_demand"]
    lower = [[each.lower_rps.get(model, 0.0) for each in chosen] for model in question.models]
    rates = [[each.rates_rps.get(model, 0.0) for each in chosen] for model in question.models]
    if not (demands := demands_rps(question, points)):
        return
    shares = np.array(question.shares)
    count = needed if option.shared else needed_apart
    sure, likely = (count(np.array(each), shares, demands) for each in (lower, rates))
    for total_rps, must, may in zip(demands, sure.tolist(), likely.tolist(), strict=True):
        yield Cost(question, option, total_rps, must, must * usd, may * usd)


def needed_apart(
    rates_rps: Floats, shares: Floats, demands_rps: Sequence[float]
) -> NDArray[np.int64]:
    """How many servers that have one model each carry each of the demands.

    A hair's breadth over a whole number is not one more.
    """
    most = rates_rps.max(axis=1)  # of several operating points of a model, such as by preset
    servers = np.ceil(np.outer(demands_rps, shares) / most - TOLERANCE)
    return np.maximum(servers, 1).sum(axis=1).astype(np.int64)


def needed(rates_rps: Floats, shares: Floats, demands_rps: Sequence[float]) -> NDArray[np.int64]:
    """How many servers carry each of the demands, which ascend; all servers cost the same.

    Beyond MOST_EXACT of them, not counting those that are too few to have all models, those that
    carry most for their number are taken again and again.
    """
    most_models = int(np.count_nonzero(rates_rps, axis=0).max())
    reached = [0.0] * -(-len(rates_rps) // most_models)
    while reached[-1] < demands_rps[-1] and np.count_nonzero(reached) < MOST_EXACT:
        carried = carried_rps(rates_rps, shares, len(reached))
        reached.append(max(carried, reached[-1]))
    del reached[0]  # of no server
    best = int(np.argmax(reached / np.arange(1, len(reached) + 1)))
    demands = (1 - TOLERANCE) * np.array(demands_rps)
    blocks = np.ceil(np.maximum(demands - reached[-1], 0) / reached[best])
    within = np.searchsorted(reached, demands - blocks * reached[best])
    return (blocks * (best + 1) + within + 1).astype(np.int64)


def carried_rps(rates_rps: Floats, shares: Floats, servers: int) -> float:
    """The highest demand, in all, that so many servers carry: each runs at any of the columns of
    `rates_rps` (models, columns), and of the demand `shares` (models,), above 0, are each model's.
    """
    columns = rates_rps.shape[1]
    if comb(servers + columns - 1, servers) <= MOST_WAYS:
        carried = ways(columns, servers) @ rates_rps.T
        return float((carried / shares).min(axis=1).max())
    found = optimize.milp(
        np.append(np.zeros(columns), -1.0),
        integrality=np.append(np.ones(columns), 0.0),
        constraints=[
            optimize.LinearConstraint(np.hstack([rates_rps, -shares[:, None]]), lb=0),
            optimize.LinearConstraint(np.append(np.ones(columns), 0.0), ub=servers),
        ],
        options={"time_limit": SOLVE_S},
    )
    return 0.0 if found.x is None else float(found.x[-1])  # None: nothing in time


@lru_cache
def ways(columns: int, servers: int) -> NDArray[np.int64]:
    """All ways to divide so many servers among columns, of shape (ways, columns)."""
    # Each way is a choice of the places of the bars between columns, in a row of servers and bars.
    places = np.array(list(combinations(range(servers + columns - 1), columns - 1)), np.int64)
    bars = places.reshape(comb(servers + columns - 1, servers), columns - 1)
    return np.diff(bars, axis=1, prepend=-1, append=servers + columns - 1) - 1


def stretches(of: Sequence[Cost]) -> Iterator[Stretch]:
    """By question, where which option is the cheapest.

    Shared servers are where they are cheaper both at the lower limits and at the estimates: at the
    former alone that might be since a dedicated peak is less well known. Else dedicated ones are,
    which disturb nobody.
    """
    for _, asked in groupby(of, key=lambda cost: cost.question):
        by_demand = sorted(asked, key=lambda cost: cost.total_rps)
        best = [_best(list(same)) for _, same in groupby(by_demand, lambda cost: cost.total_rps)]
        for _, run in groupby(best, key=lambda found: found[0].option):
            found = list(run)
            savings = [saving for _, both in found for saving in both]
            yield Stretch(
                found[0][0],
                found[-1][0],
                min(savings, default=np.nan),
                max(savings, default=np.nan),
            )


def _best(same: Sequence[Cost]) -> tuple[Cost, tuple[float, ...]]:
    """The cheapest of the options at one demand, and what it saves against dedicated ones."""
    alone = [cost for cost in same if not cost.option.shared]
    if not alone:
        return min(same, key=lambda cost: cost.usd_per_hour), ()
    sure = min(cost.usd_per_hour for cost in alone)
    likely = min(cost.usd_at_estimates for cost in alone)
    cheaper = [
        cost
        for cost in same
        if cost.option.shared
        and cost.usd_per_hour < sure * (1 - TOLERANCE)
        and cost.usd_at_estimates < likely * (1 - TOLERANCE)
    ]
    best = min(cheaper or alone, key=lambda cost: cost.usd_per_hour)
    return best, (1 - best.usd_per_hour / sure, 1 - best.usd_at_estimates / likely)
