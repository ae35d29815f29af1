"""Whole servers for a demand, dedicated only and shared (docs/method.md, "Sharing, cost and
saving")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from perseus.peak.stats import Floats
from perseus.results.repeats import RepeatedPeak

DEMAND_SERVERS = 10
"""The demand that fleets are compared at: what so many dedicated servers would carry."""


@dataclass(frozen=True)
class Fleet:
    """Whole servers that carry `demand_rps` (tenants,): dedicated only, and with sharing allowed.

    `counts` says how many shared-fleet servers run at each column of `pack`. There is no interval:
    whole servers leap where a demand is near a multiple of a capacity, and this demand is one of
    the estimates.
    """

    demand_rps: Floats
    dedicated_servers: int
    shared_servers: int
    counts: tuple[int, ...]

    @property
    def saving(self) -> float:
        """The share of the dedicated servers that sharing spares."""
        return 1 - self.shared_servers / self.dedicated_servers


def fleet(
    peak: RepeatedPeak, scenario: Sequence[RepeatedPeak], alone: Sequence[RepeatedPeak]
) -> Fleet:
    """Fleets for ten dedicated servers' worth of load in the proportion of `peak`.

    The shared fleet may run servers at any peak of `scenario` and dedicated ones: the columns of
    `pack` are `scenario`, then `alone`. A server may get less than its rates, never more. All peaks
    must be known.
    """
    capacity = np.array([each.rates_rps[0] for each in alone])
    shares = peak.rates_rps / capacity
    demand = DEMAND_SERVERS * shares / shares.sum() * capacity
    together = [each.rates_rps for each in scenario]
    counts = pack(np.column_stack([*together, np.diag(capacity)]), demand)
    return Fleet(
        demand_rps=demand,
        dedicated_servers=servers_needed(demand, capacity),
        shared_servers=int(counts.sum()),
        counts=tuple(int(count) for count in counts),
    )


def servers_needed(demand_rps: Floats, capacity_rps: Floats | Sequence[float]) -> int:
    """Dedicated servers for the demand; a hair's breadth over a whole number is not one more."""
    return int(np.ceil(demand_rps / np.asarray(capacity_rps) - 1e-9).sum())


def pack(rates_rps: Floats, demand_rps: Floats) -> Floats:
    """The fewest servers that meet the demand: how many run at each column of rates.

    `rates_rps` has shape (tenants, columns), `demand_rps` (tenants,). A mixed-integer linear
    programme, solved to optimality by HiGHS. Raises ValueError when no number of servers is enough.
    """
    columns = rates_rps.shape[1]
    found = optimize.milp(
        np.ones(columns),
        integrality=np.ones(columns),
        constraints=optimize.LinearConstraint(
            rates_rps / np.maximum(demand_rps, 1e-12)[:, None],
            lb=np.where(demand_rps > 0, 1 - 1e-9, 0),
        ),
    )
    if found.x is None:
        raise ValueError(f"no fleet meets the demand {demand_rps} requests/s: {found.message}")
    return np.asarray(np.round(found.x))
