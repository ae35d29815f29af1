"""Find the cheapest set of servers that carries a demand, by mixed-integer linear programming."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from perseus.peak.stats import Floats

GAP = 1e-4
"""Relative gap of the solver: the solver stops at a fleet if every other fleet saves at most this
share of the cost."""
TIME_LIMIT_S = 30.0
HEADROOM_S = 3.0
"""Time limit in seconds for the function `with_most_spare_capacity`. For a thousand models, a
longer time limit did not lead to a better fleet."""
OPTIMAL, TIME_LIMIT = "optimal", "time limit"
STATUSES: Final = (OPTIMAL, TIME_LIMIT)
TOLERANCE = 1e-9
"""Tolerance for rounding errors: the capacity of a fleet may be smaller than the demand by up to
this share of the demand."""


@dataclass(frozen=True)
class Offers:
    """The K kinds of servers that a fleet may have, each in any number.

    `rates_rps` (models, K) has the capacity of one server of each kind for each model.
    `usd_per_hour` (K,) has the price of one server of each kind. `hosts` (models, K) is true if
    servers of the kind serve the model. `is_spot` (K,) is true for spot servers, which the cloud
    may revoke.
    """

    rates_rps: Floats
    usd_per_hour: Floats
    is_spot: NDArray[np.bool_]

    @property
    def relative_prices(self) -> Floats:
        """Prices divided by the highest price. The solver has absolute tolerances, so prices far
        from 1 would make its result inexact."""
        return self.usd_per_hour / (self.usd_per_hour.max() or 1.0)

    @property
    def hosts(self) -> NDArray[np.bool_]:
        return self.rates_rps > 0


@dataclass(frozen=True)
class Wanted:
    """A demand, and the conditions that a fleet must meet.

    `demand_rps` (models,) has the demand for each model. `headroom` is the share of each server's
    capacity that must stay free. `min_servers` is the least number of servers that serve each
    model. `spot_share` is the largest share of a model's demand that spot servers may carry.
    """

    demand_rps: Floats
    headroom: float = 0.0
    min_servers: int = 1
    spot_share: float = 0.0


@dataclass(frozen=True)
class Solution:
    """A fleet that the solver found.

    `counts` (K,) has the number of servers of each kind, and `usd_per_hour` is the cost of all
    servers. A cheaper fleet may exist, but saves at most the share `gap` of this cost. `status` is
    one of STATUSES.
    """

    counts: NDArray[np.int64]
    usd_per_hour: float
    gap: float
    status: str


class NoFleetError(ValueError):
    """Error: no fleet of the available servers carries the demand, or the solver found none in
    time. The message states the reason."""


def cheapest(
    offers: Offers, wanted: Wanted, gap: float = GAP, time_limit_s: float = TIME_LIMIT_S
) -> Solution:
    """Return the cheapest fleet that carries the demand and meets the conditions in `wanted`.

    The solver stops if every other fleet saves at most the share `gap`, or after `time_limit_s`.
    Raises NoFleetError if no fleet carries the demand, or if the solver finds no fleet in this
    time. A model without demand needs no server.
    """
    matrix, least = _constraints(offers, wanted)
    prices = offers.relative_prices
    found = optimize.milp(
        prices,
        integrality=np.ones(len(prices)),
        constraints=optimize.LinearConstraint(sparse.csr_array(matrix), lb=least),
        options={"mip_rel_gap": gap, "time_limit": time_limit_s},
    )
    if found.x is None:
        raise NoFleetError(found.message)
    counts = np.round(found.x).astype(np.int64)
    if _is_short(counts, matrix, least):
        raise NoFleetError("the fleet that the solver found does not carry the demand")
    cost = float(prices @ counts)
    left = max(1 - found.mip_dual_bound / cost, 0.0) if cost > 0 else 0.0
    usd = float(offers.usd_per_hour @ counts)
    return Solution(counts, usd, left, OPTIMAL if found.status == 0 else TIME_LIMIT)


def with_most_spare_capacity(offers: Offers, wanted: Wanted, found: Solution) -> Solution:
    """Return the fleet with the largest spare capacity among the fleets that cost no more than
    `found`.

    Each model with a demand has the quotient (capacity of the fleet for the model / demand). The
    spare capacity of a fleet is its smallest quotient. If the solver finds no fleet in time, the
    result is `found`.
    """
    matrix, least = _constraints(offers, wanted)
    prices, asked = offers.relative_prices, int(np.sum(wanted.demand_rps > 0))
    most = float(prices @ found.counts)
    spare = np.zeros(
        (len(matrix), 1)
    )  # the last variable is the spare capacity, at most each of the first rows
    spare[:asked] = -1
    least = np.where(np.arange(len(least)) < asked, 0.0, least)
    made = optimize.milp(
        np.append(np.zeros(len(prices)), -1.0),
        integrality=np.append(np.ones(len(prices)), 0.0),
        bounds=optimize.Bounds(np.append(np.zeros(len(prices)), 1 - TOLERANCE), np.inf),
        constraints=[
            optimize.LinearConstraint(sparse.csr_array(np.hstack([matrix, spare])), lb=least),
            optimize.LinearConstraint(np.append(prices, 0.0), ub=most * (1 + TOLERANCE)),
        ],
        options={"mip_rel_gap": GAP, "time_limit": HEADROOM_S},
    )
    if made.x is None:
        return found
    counts = np.round(made.x[:-1]).astype(np.int64)
    is_as_cheap = float(prices @ counts) <= most * (1 + 1e-6)
    if not (is_as_cheap and carries(counts, offers, wanted)):
        return found
    return replace(found, counts=counts, usd_per_hour=float(offers.usd_per_hour @ counts))


def carries(counts: NDArray[np.int64], offers: Offers, wanted: Wanted) -> bool:
    """Return whether a fleet with `counts` servers of each kind carries the demand and meets the
    conditions in `wanted`."""
    return not _is_short(counts, *_constraints(offers, wanted))


def _is_short(counts: NDArray[np.int64], matrix: Floats, least: Floats) -> bool:
    """Return whether a fleet violates the constraints. Because of a bug (scipy issue 24141), the
    solver may return a fleet that violates the constraints."""
    return bool(np.any(matrix @ counts - least < -1e-6 * np.maximum(least, 1)))


def _constraints(offers: Offers, wanted: Wanted) -> tuple[Floats, Floats]:
    """Return the matrix of the constraints, shape (rows, K), and their lower bounds, shape (rows,):
    a fleet is permitted if matrix @ counts >= lower bounds."""
    asked = wanted.demand_rps > 0
    demand = wanted.demand_rps[asked]
    # The capacities are divided by the demand, so that the solver is equally accurate for demands
    # of 1 and of 10,000 requests/s.
    carried = (1 - wanted.headroom) * offers.rates_rps[asked] / demand[:, None]
    rows = [carried, offers.hosts[asked].astype(float)]
    least = [np.full(len(demand), 1 - TOLERANCE), np.full(len(demand), float(wanted.min_servers))]
    if offers.is_spot.any():
        rows.append(carried * ~offers.is_spot)
        least.append(np.full(len(demand), 1 - wanted.spot_share - TOLERANCE))
    return np.vstack(rows), np.concatenate(least)
