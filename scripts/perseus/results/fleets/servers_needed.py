"""Compute how many servers of one type carry a demand (docs/explanation/fleets.md).

In the arrays of this module, a column is an operating point: one rate per model, which a single
server carries at the same time. Each server of a fleet works at one operating point. A *way* to
divide a number of servers says how many servers work at each operating point.
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
"""Largest number of servers for which the module tries all ways to divide the servers among the
operating points."""

SOLVE_S = 1.0
"""Time limit in seconds for the integer programme of the function `fewest`."""

DEMAND_S = 10.0
"""Time limit in seconds for the integer programme of one demand. The integer programme for ten
models takes less than a second."""

DEMANDS_S, HURRIED_S = 60.0, 0.5
"""After DEMANDS_S seconds of integer programmes, the time limit for the integer programme of one
demand falls from DEMAND_S to HURRIED_S seconds."""

Hosts: TypeAlias = tuple[tuple[bool, ...], ...]
"""For each model, a tuple with one value per operating point: true if servers at this operating
point serve the model. Unlike an array, a tuple can be the key of a cache."""

MAX_WAYS = 20_000
"""The module tries all ways to divide the servers only if there are at most MAX_WAYS ways. For more
ways, an integer programme is faster. Two models with two mixes (four operating points) have fewer
ways, even with MAX_TRIED servers."""

AT_A_TIME = 2**15
"""The module computes one number for each pair of a way and a set of rates, and at most AT_A_TIME
numbers at once. AT_A_TIME numbers take 256 KiB and fit into the cache of a core."""


def are_few_ways(columns: int, servers: int) -> bool:
    """Return whether there are at most MAX_WAYS ways to divide `servers` equal servers among
    `columns` operating points."""
    return comb(servers + columns - 1, servers) <= MAX_WAYS


def fewest(hosts: NDArray[np.bool_], with_each: int = 1) -> int:
    """Return the least number of servers with which at least `with_each` servers serve each model,
    whatever the demand.

    `hosts` has one row per model and one column per operating point: true if servers at this
    operating point serve the model. If the solver needs more than SOLVE_S seconds, the result is
    only a lower bound of the least number.
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
    """For each total demand, return the number of dedicated servers that carry it, shape (...,
    demands).

    `rates_rps` has the rates of each model on one server, shape (..., models, columns). `shares`
    has the share of each model in the total demand. Each model gets whole servers, at least
    `with_each`.
    """
    most = rates_rps.max(axis=-1)[
        ..., None, :
    ]  # a model may have several operating points, for example of several presets
    servers = np.ceil(np.outer(demands_rps, shares) / most - TOLERANCE)
    return np.maximum(servers, with_each).sum(axis=-1).astype(np.int64)


def needed(
    rates_rps: Floats, shares: Floats, demands_rps: Sequence[float], with_each: int = 1
) -> NDArray[np.int64]:
    """For each total demand, return the least number of servers, dedicated or shared, that carry
    it.

    `demands_rps` must be in ascending order. `rates_rps` has shape (models, columns), and `shares`
    has the share of each model in the total demand. At least `with_each` servers serve each model.
    All servers must cost the same. The result is never larger than with dedicated servers only.

    There are three methods:

    - If a demand needs at most MAX_TRIED servers, and there are few ways to divide them among the
      operating points (`are_few_ways`), the function tries all ways.
    - If a demand needs more servers and `with_each` is 1, the function finds the group of at most
      MAX_TRIED servers with the highest capacity per server, and adds copies of this group. Other
      fleets with as many servers carry hardly more.
    - In all other cases, the function solves an integer programme.
    """
    return needed_at_each(rates_rps[None], shares, demands_rps, with_each)[0].astype(np.int64)


def needed_at_each(
    rates_rps: Floats,
    shares: Floats,
    demands_rps: Sequence[float],
    with_each: int = 1,
    certain: int = 1,
) -> Floats:
    """Return the result of `needed` for each of several sets of rates, shape (sets, demands).

    `rates_rps` has the rates of all sets, shape (sets, models, columns), for example one set for
    each draw of the capacities. For a demand that needs more servers than the function
    `_reached_rps` tries, only the first `certain` sets have a number. To save time, the result is
    NaN in all other sets.
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
            found[is_more] = _extrapolated(carried, demands[is_more])
        else:
            found[is_more] = _solved(rates, shares, np.array(demands_rps)[is_more], with_each)
        found[:] = np.minimum(found, needed_apart(rates, shares, demands_rps, with_each))
    return servers


def _extrapolated(reached_rps: Floats, demands_rps: Floats) -> NDArray[np.int64]:
    """Return the number of servers for each demand that needs more than MAX_TRIED servers.

    `reached_rps` has the highest total demands that 1, 2, 3, ..., MAX_TRIED servers carry. The
    function adds copies of the group of servers with the highest capacity per server.
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
    """Return the number of servers for each demand, from integer programmes.

    If two demands need the same number of servers, each demand between the two also needs this
    number. The function solves no integer programme for such a demand.
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
        except NoFleetError:  # no solution in time: use dedicated servers, which carry any demand
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

    `rates_rps` has the rates of all sets, shape (sets, models, columns). The function tries at most
    MAX_TRIED servers. It stops earlier if the servers carry `most_rps` in every set, or if one more
    server would have more than MAX_WAYS ways.
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
    """Return the highest total demand that `servers` servers carry, shape (sets,).

    The function tries all ways to divide the servers among the operating points. `rates_rps` has
    the rates of all sets, shape (sets, models, columns). The result is 0 if no way puts each model
    on at least `with_each` servers.
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
    """Return the highest total demand that each way in `tried` carries, shape (..., ways).

    `tried` has shape (columns, ways), and `rates` has shape (..., models, columns). Each entry of
    `rates` is the rate of a model on one server, divided by the share of this model in the total
    demand.
    """
    models = range(rates.shape[-2])
    return reduce(np.minimum, (rates[..., model, :] @ tried for model in models))


def _may_carry_most(rates: Floats, tried: Floats) -> NDArray[np.bool_]:
    """Return for each way whether it may be the best way of at least one set: the way that carries
    the highest total demand.

    `rates` is as in `_carried`, shape (sets, models, columns). The reference is the best way at the
    mean rates of all sets. The function divides the rates of each set by the demand that the
    reference carries in this set, and keeps the highest quotient of all sets for each model and
    column. A way that carries less than 1 at these quotients is worse than the reference in every
    set.
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
    """Return the ways to divide `servers` servers with which at least `with_each` servers serve
    each model, shape (columns, ways)."""
    has = np.array(hosts, dtype=np.int64)
    tried = ways(has.shape[1], servers)
    return tried[(tried @ has.T >= with_each).all(axis=1)].T.astype(float)


@lru_cache
def ways(columns: int, servers: int) -> NDArray[np.int64]:
    """Return all ways to divide `servers` servers among the columns, shape (ways, columns)."""
    # Stars and bars (combinatorics): the servers stand in a row, bars separate the columns, and
    # each way is a choice of places for the bars.
    places = np.array(list(combinations(range(servers + columns - 1), columns - 1)), np.int64)
    bars = places.reshape(comb(servers + columns - 1, servers), columns - 1)
    return np.diff(bars, axis=1, prepend=-1, append=servers + columns - 1) - 1
