"""Count the servers of one type that a demand needs (docs/explanation/fleets.md).

In the arrays of this module, a column is an operating point: the rates of all models on one server.
A way is one division of a number of servers among the columns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import combinations
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from perseus.peak.stats import Floats
from perseus.results.fleets.cheapest import (
    GAP,
    TOLERANCE,
    NoFleetError,
    Offers,
    Wanted,
    cheapest,
)

MAX_TRIED = 40
"""Largest number of servers for which the search tries all ways to divide the servers among
operating points."""

SOLVE_S = 1.0
"""Time limit in seconds for finding the least number of servers that together serve all models."""

DEMAND_S = 10.0
"""Time limit in seconds for finding the least number of servers for one demand. Ten models take
less than a second."""

DEMANDS_S, HURRIED_S = 60.0, 0.5
"""Time limit in seconds for all demands together, and time limit for each further demand after the
first limit has passed."""

Hosts: TypeAlias = tuple[tuple[bool, ...], ...]
"""For each model and each column, whether the servers of the column serve the model. Unlike an
array, these tuples can be keys of a cache."""

MAX_WAYS = 20_000
"""Largest number of ways to divide servers among operating points for which the search tries all
ways. Up to this number, trying all ways is faster than an integer programme. Two models with two
mixes (four columns) stay below this number for up to MAX_TRIED servers."""

AT_A_TIME = 2**15
"""Number of ways x sets of rates that the search evaluates at once. The block takes 256 KiB, so it
fits into the cache of a core."""


def are_few_ways(columns: int, servers: int) -> bool:
    """Return whether the ways to divide `servers` servers among the columns are few enough to try
    all of them."""
    return comb(servers + columns - 1, servers) <= MAX_WAYS


def fewest(hosts: NDArray[np.bool_], with_each: int = 1) -> int:
    """Return the least number of servers with which each model is on at least `with_each` servers.

    `hosts` (models, columns) is true if a server of the column serves the model. If the solver
    needs more than SOLVE_S seconds, the result is only a lower bound of this number.
    """
    return _fewest(_plain(hosts), with_each)


def _plain(hosts: NDArray[np.bool_]) -> Hosts:
    return tuple(map(tuple, hosts.tolist()))


@lru_cache
def _fewest(hosts: Hosts, with_each: int) -> int:
    columns = len(hosts[0])
    found = optimize.milp(
        np.ones(columns),
        integrality=np.ones(columns),
        constraints=optimize.LinearConstraint(
            sparse.csr_array(np.array(hosts, float)), lb=with_each
        ),
        options={"time_limit": SOLVE_S},
    )
    bound = found.mip_dual_bound
    return 1 if bound is None else max(int(np.ceil(bound - TOLERANCE)), 1)


def needed_apart(
    rates_rps: Floats, shares: Floats, demands_rps: Sequence[float] | Floats, with_each: int = 1
) -> NDArray[np.int64]:
    """Return the number of dedicated servers that each total demand needs, shape (..., demands).

    `rates_rps` has the capacities, shape (..., models, columns), and `shares` has the share of each
    model in the demand. The function rounds each number up, unless it exceeds a whole number only
    by a rounding error.
    """
    most = rates_rps.max(axis=-1)[
        ..., None, :
    ]  # a model may have several points, for example of several presets
    servers = np.ceil(np.outer(demands_rps, shares) / most - TOLERANCE)
    return np.maximum(servers, with_each).sum(axis=-1).astype(np.int64)


def needed(
    rates_rps: Floats, shares: Floats, demands_rps: Sequence[float], with_each: int = 1
) -> NDArray[np.int64]:
    """Return the number of servers that each total demand needs, for demands in ascending order.

    `rates_rps` has shape (models, columns), and `shares` has the share of each model in the demand.
    Each model is on at least `with_each` servers. The function assumes that all servers cost the
    same.

    The function tries all ways to divide the servers if there are few ways, and otherwise uses
    integer programmes. For more than MAX_TRIED servers, if `with_each` is 1, the fleet consists of
    copies of the group of servers with the highest capacity per server, because other combinations
    of servers carry little more. The result never exceeds the number of dedicated servers.
    """
    return needed_at_each(rates_rps[None], shares, demands_rps, with_each)[0].astype(np.int64)


def needed_at_each(
    rates_rps: Floats,
    shares: Floats,
    demands_rps: Sequence[float],
    with_each: int = 1,
    certain: int = 1,
) -> Floats:
    """Return the numbers of servers that `needed` returns, for several sets of rates, shape (sets,
    demands).

    The rates have shape (sets, models, columns). If there are too many ways to divide the servers,
    the result is NaN for all sets except the first `certain` sets.
    """
    demands = (1 - TOLERANCE) * np.array(demands_rps)
    reached = _reached_rps(rates_rps, shares, demands[-1], with_each)[1:]
    fewer = (reached[:, :, None] < demands).sum(
        axis=0, dtype=np.int16
    )  # int16 takes 1/4 of the time of int64
    servers = np.where(fewer < len(reached), 1.0 + fewer, np.nan)
    for found, carried, rates in zip(servers[:certain], reached.T, rates_rps, strict=False):
        is_more = np.isnan(found)
        if not is_more.any():
            continue
        if len(carried) == MAX_TRIED and with_each == 1:
            found[is_more] = _again_and_again(carried, demands[is_more])
        else:
            found[is_more] = _solved(rates, shares, np.array(demands_rps)[is_more], with_each)
        found[:] = np.minimum(found, needed_apart(rates, shares, demands_rps, with_each))
    return servers


def _again_and_again(reached_rps: Floats, demands_rps: Floats) -> NDArray[np.int64]:
    """Return the number of servers for demands that need more servers than the largest tried
    number.

    `reached_rps` has the highest demands that 1, 2, 3, ... servers carry. The servers beyond the
    largest tried number are copies of the group of servers with the highest capacity per server.
    """
    of_each = reached_rps / np.arange(1, len(reached_rps) + 1)
    best = int(
        np.argmax(of_each >= (1 - TOLERANCE) * of_each.max())
    )  # on a tie, the fewest servers
    blocks = np.ceil((demands_rps - reached_rps[-1]) / reached_rps[best])
    left = np.searchsorted(reached_rps, demands_rps - blocks * reached_rps[best])
    return (blocks * (best + 1) + 1 + left).astype(np.int64)


def _solved(
    rates_rps: Floats, shares: Floats, demands_rps: Floats, with_each: int
) -> NDArray[np.int64]:
    """Return the number of servers for each demand, found by integer programmes.

    If two demands need the same number of servers, all demands between them need this number too.
    """
    columns = rates_rps.shape[1]
    offers = Offers(rates_rps, np.ones(columns), np.zeros(columns, bool))
    servers = np.zeros(len(demands_rps), np.int64)
    hurry_s = time.monotonic() + DEMANDS_S

    def solve(i: int) -> None:
        wanted = Wanted(demands_rps[i] * shares, min_servers=with_each)
        limit_s = DEMAND_S if time.monotonic() < hurry_s else HURRIED_S
        try:
            servers[i] = cheapest(offers, wanted, GAP, limit_s).counts.sum()
        except NoFleetError:  # no solution in time: dedicated servers always carry the demand
            servers[i] = needed_apart(rates_rps, shares, demands_rps[[i]], with_each)[0]

    def solve_between(first: int, last: int) -> None:
        if servers[first] == servers[last]:
            servers[first:last] = servers[last]
        elif last - first > 1:
            middle = (first + last) // 2
            solve(middle)
            solve_between(first, middle)
            solve_between(middle, last)

    for end in {0, len(servers) - 1}:
        solve(end)
    solve_between(0, len(servers) - 1)
    return np.minimum.accumulate(servers[::-1])[
        ::-1
    ]  # a fleet that was found for a larger demand may have fewer servers


def _reached_rps(rates_rps: Floats, shares: Floats, most_rps: float, with_each: int) -> Floats:
    """Return the highest total demand that 0, 1, 2, ... servers carry, shape (numbers of servers,
    sets).

    The rates have shape (sets, models, columns). The last row is for the number of servers that
    carries `most_rps`, for MAX_TRIED servers, or for the largest number of servers with few enough
    ways to divide them, whichever is least.
    """
    sets, _, columns = rates_rps.shape
    reached = [np.zeros(sets)]
    while (reached[-1] < most_rps).any() and len(reached) <= MAX_TRIED:
        if not are_few_ways(columns, len(reached)):
            break
        carried = _of_all_ways(rates_rps, shares, len(reached), with_each)
        reached.append(np.maximum(carried, reached[-1]))
    return np.array(reached)


def _of_all_ways(rates_rps: Floats, shares: Floats, servers: int, with_each: int) -> Floats:
    """Return the highest total demand that this many servers carry, shape (sets,).

    The rates have shape (sets, models, columns). The function tries all ways to divide the servers
    among the columns. The result is 0 if no way has each model on at least `with_each` servers.
    """
    hosts = np.any(rates_rps > 0, axis=0)
    tried = _ways_with_all(_plain(hosts), servers, with_each)
    rates, most = rates_rps / shares[:, None], np.zeros(len(rates_rps))
    if len(most) > 1:
        tried = tried[:, _may_carry_most(rates, tried)]
    at_a_time = max(AT_A_TIME // len(most), 1)
    for start in range(0, tried.shape[1], at_a_time):
        most = np.maximum(most, _carried(rates, tried[:, start : start + at_a_time]).max(axis=-1))
    return most


def _carried(rates: Floats, tried: Floats) -> Floats:
    """Return the highest total demand that each tried way carries, shape (..., ways).

    `rates` are capacities divided by the shares of the models, shape (..., models, columns).
    """
    models = range(rates.shape[-2])
    return reduce(np.minimum, (rates[..., model, :] @ tried for model in models))


def _may_carry_most(rates: Floats, tried: Floats) -> NDArray[np.bool_]:
    """Return which ways (divisions of servers) may carry the largest demand in at least one set of
    rates.

    `rates` are as in `_carried`, shape (sets, models, columns). The bound of a set of rates is the
    demand that the best way at the mean rates would carry at the rates of this set. The function
    divides the rates of each set by the bound of the set. The function excludes a way if the way
    carries less than 1 (the divided bound) even at the highest divided rates of all sets.
    """
    if not tried.shape[1]:
        return np.ones(0, bool)
    best = int(_carried(rates.mean(axis=0), tried).argmax())
    least = _carried(rates, tried[:, [best]])[..., None]
    if not (least > 0).all():
        return np.ones(tried.shape[1], bool)
    return _carried((rates / least).max(axis=0), tried) >= 1 - TOLERANCE


@lru_cache
def _ways_with_all(hosts: Hosts, servers: int, with_each: int) -> Floats:
    """Return the ways to divide this many servers that have each model on at least `with_each`
    servers.

    The result has shape (columns, ways).
    """
    has = np.array(hosts, dtype=np.int64)
    tried = ways(has.shape[1], servers)
    return tried[(tried @ has.T >= with_each).all(axis=1)].T.astype(float)


@lru_cache
def ways(columns: int, servers: int) -> NDArray[np.int64]:
    """Return all ways to divide this many servers among the columns, shape (ways, columns)."""
    # Stars and bars (combinatorics): the servers stand in a row, bars separate the columns, and
    # each way is a choice of places for the bars.
    places = np.array(list(combinations(range(servers + columns - 1), columns - 1)), np.int64)
    bars = places.reshape(comb(servers + columns - 1, servers), columns - 1)
    return np.diff(bars, axis=1, prepend=-1, append=servers + columns - 1) - 1
