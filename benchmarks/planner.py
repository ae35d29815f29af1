"""Compare the fleet planner with PuLP and CBC on the same integer programme, for many models."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pulp

from benchmarks.results import Goal, Row
from benchmarks.serving import Place, Say
from perseus.results.fleets.cheapest import GAP, Offers, Wanted, cheapest
from perseus.results.fleets.servers_needed import needed

BENCHMARK = "planner"
MODELS = (10, 100, 1000)
TYPES_USD = (0.0475, 0.095, 0.19, 0.526)
"""Prices of four types of servers. A more expensive type carries more load, by a random factor for
each model."""
LIMIT_S = 60.0
MAX_OVER_DEMAND = 100
"""Largest number of models for which the benchmark also plans many demands."""

DEMANDS, EACH, MAX_SERVERS = 121, 10, 100
"""Number of demands. CBC solves every EACH-th demand. The largest demand fills MAX_SERVERS
servers."""


@dataclass(frozen=True)
class Fleet:
    """The price of the fleet that a solver found, and the run time of the solver."""

    usd_per_hour: float
    took_s: float


def run(at: Place, say: Say) -> Iterator[Row]:
    for models in MODELS:
        offers, wanted = problem(models)
        start_s = time.monotonic()
        found = cheapest(offers, wanted, GAP, LIMIT_S)
        ours = Fleet(found.usd_per_hour, time.monotonic() - start_s)
        peer = by_cbc(offers, wanted)
        say(f"{models} models: {ours}, CBC {peer}")
        case = f"{models} models, {offers.rates_rps.shape[1]} operating points"
        yield Row(
            BENCHMARK,
            case,
            "seconds to a fleet (lower is better)",
            ours.took_s,
            peer.took_s,
            "PuLP/CBC",
            Goal("<=", LIMIT_S, of="ours"),
        )
        yield Row(
            BENCHMARK,
            case,
            "USD/h of the fleet (lower is better)",
            ours.usd_per_hour,
            peer.usd_per_hour,
            "PuLP/CBC",
            Goal("<=", 1.001),
        )
        yield Row(BENCHMARK, case, "stated optimality gap (share)", found.gap)
        if models <= MAX_OVER_DEMAND:
            yield from over_demand(models, offers, wanted, say)


def over_demand(models: int, offers: Offers, wanted: Wanted, say: Say) -> Iterator[Row]:
    """Compare how many servers of the cheapest type the planner and CBC need for each of many
    demands. All demands have the same proportion of the models."""
    mine = offers.usd_per_hour == min(TYPES_USD)
    rates, shares = offers.rates_rps[:, mine], wanted.demand_rps / wanted.demand_rps.sum()
    full_rps = 1 / float((shares / rates.max(axis=1)).sum())
    demands = np.geomspace(1, MAX_SERVERS * full_rps, DEMANDS)
    start_s = time.monotonic()
    found = needed(rates, shares, demands.tolist())
    took_s = time.monotonic() - start_s
    one_type = Offers(rates, np.ones(rates.shape[1]), np.zeros(rates.shape[1], bool))
    peer = [by_cbc(one_type, Wanted(rps * shares)).usd_per_hour for rps in demands[::EACH]]
    say(f"{models} models, many demands: {took_s:.2f} s, {found[::EACH]}, CBC {peer}")
    case = f"{models} models, {rates.shape[1]} operating points of one type, {DEMANDS} demands"
    yield Row(
        BENCHMARK,
        case,
        "seconds for all demands (lower is better)",
        took_s,
        goal=Goal("<=", LIMIT_S, of="ours"),
    )
    yield Row(
        BENCHMARK,
        case,
        f"sum of the servers for {len(peer)} demands (lower is better)",
        float(found[::EACH].sum()),
        float(np.sum(peer)),
        "PuLP/CBC",
        Goal("<=", 1.0),
    )


def problem(models: int) -> tuple[Offers, Wanted]:
    """Return a random problem: on each type of server, one operating point for each model alone,
    and as many for random pairs of models."""
    rng = np.random.default_rng(models)
    alone_rps = rng.uniform(20, 400, models)
    pairs = np.array([rng.choice(models, 2, replace=False) for _ in range(models)])
    share = rng.uniform(0.35, 0.7, (models, 2))
    columns, usd = [], []
    for price in TYPES_USD:
        factor = price / TYPES_USD[0] * rng.uniform(0.7, 1.2, models)
        capacity = factor * alone_rps
        shared = np.zeros((models, models))
        for column, (pair, part) in enumerate(zip(pairs, share, strict=True)):
            shared[pair, column] = part * capacity[pair]
        columns += [np.diag(capacity), shared]
        usd += [price] * (2 * models)
    rates = np.hstack(columns)
    demand = rng.lognormal(3, 1.5, models)
    return Offers(rates, np.array(usd), np.zeros(len(usd), bool)), Wanted(demand)


def by_cbc(offers: Offers, wanted: Wanted) -> Fleet:
    start_s = time.monotonic()
    programme = pulp.LpProblem("fleet", pulp.LpMinimize)
    counts = [
        pulp.LpVariable(f"n{i}", lowBound=0, cat="Integer") for i in range(len(offers.usd_per_hour))
    ]
    programme += pulp.lpDot(offers.usd_per_hour.tolist(), counts)
    for model, demand in enumerate(wanted.demand_rps):
        here = np.flatnonzero(offers.rates_rps[model])
        rates = (offers.rates_rps[model, here] / demand).tolist()
        mine = [counts[i] for i in here]
        programme += pulp.lpDot(rates, mine) >= 1
        programme += pulp.lpSum(mine) >= 1
    programme.solve(pulp.PULP_CBC_CMD(msg=False, gapRel=GAP, timeLimit=LIMIT_S))
    return Fleet(float(pulp.value(programme.objective)), time.monotonic() - start_s)
