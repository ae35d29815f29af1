"""What serving costs and what sharing saves (docs/method.md, M13). Pure functions of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from perseus.results.repeats import CONFIDENCE, TAIL, Line, interval, sharing_ratio
from perseus.peak.stats import Floats, Interval

DEMAND_SERVERS = 10
"""The demand that integer fleets are compared at: what so many dedicated servers would carry."""

FLEET_DRAWS = 100
"""Each takes a packing, some milliseconds."""


@dataclass(frozen=True)
class Saving:
    """What one shared line saves against dedicated servers of the same hardware and price.

    `fractional` is 1 - 1 / sum(r_i / C_i), with its interval, the chance that it is above 0, and
    the interval that holds for all `compared` lines of the scenario at once.
    """

    fractional: Interval
    probability: float
    simultaneous: Interval
    compared: int


@dataclass(frozen=True)
class Fleet:
    """Whole servers that carry `demand_rps` (tenants,): dedicated only, and with sharing allowed.

    `counts` says how many shared-fleet servers run at each column of `pack`.
    """

    demand_rps: Floats
    dedicated_servers: int
    shared_servers: int
    counts: tuple[int, ...]
    saving: Interval


def usd_per_million(usd_per_hour: float, images_per_s: Floats | float) -> Floats:
    """USD for a million inferences, of an image each, on a server that always serves that rate."""
    return np.asarray(usd_per_hour / 3600 * 1e6 / np.asarray(images_per_s, dtype=float))


def savings(lines: Sequence[Line], alone: Sequence[Line | None]) -> list[Saving]:
    """The saving of each shared line of one scenario; NaN where a peak is missing.

    Looking at several lines and choosing the best favours chance; `simultaneous` corrects for it.
    """
    ratios = [sharing_ratio(line, alone) for line in lines]
    known = [draws for _, draws in ratios if len(draws)]
    tail = simultaneous_tail(np.array(known)) if known else np.nan
    return [_saving(*ratio, tail, len(known)) for ratio in ratios]


def simultaneous_tail(draws: Floats) -> float:
    """The tail probability at which percentile intervals hold for all lines at once.

    `draws` has shape (lines, draws). A share CONFIDENCE of the joint draws lies between the
    quantiles `tail` and 1 - `tail` of every line (balanced simultaneous confidence sets: Beran,
    J. Am. Stat. Assoc. 83, 1988). With one line it is that of the ordinary interval.
    """
    ranks = (draws.argsort(axis=1).argsort(axis=1) + 0.5) / draws.shape[1]
    tail = np.quantile(np.minimum(ranks, 1 - ranks).min(axis=0), 1 - CONFIDENCE)
    return min(float(tail), TAIL)


def _saving(ratio: float, draws: Floats, tail: float, compared: int) -> Saving:
    saved, saved_draws = 1 - 1 / ratio, 1 - 1 / draws
    return Saving(
        fractional=interval(saved, saved_draws),
        probability=float(np.mean(draws > 1)) if len(draws) else np.nan,
        simultaneous=interval(saved, saved_draws, tail),
        compared=compared,
    )


def fleet(line: Line, scenario: Sequence[Line], alone: Sequence[Line]) -> Fleet:
    """Fleets for ten dedicated servers' worth of load in the proportion of `line`.

    The shared fleet may run servers at any line of `scenario` and dedicated ones: the columns of
    `pack` are `scenario`, then `alone`. A server may get less than its rates, never more. Demands
    stay; the rates are resampled. All lines must have a limit.
    """
    columns = [*scenario, *alone]
    capacity = np.array([peak.rates_rps[0] for peak in alone])
    shares = line.rates_rps / capacity
    demand = DEMAND_SERVERS * shares / shares.sum() * capacity
    counts = pack(_rates(columns, len(scenario)), demand)
    pairs = np.array(
        [
            (
                servers_needed(demand, [peak.rates_draws_rps[d, 0] for peak in alone]),
                pack(_rates(columns, len(scenario), d), demand).sum(),
            )
            for d in range(min(FLEET_DRAWS, len(line.scale_draws)))
        ]
    )
    resampled = 1 - pairs[:, 1] / pairs[:, 0]
    needed = servers_needed(demand, capacity)
    return Fleet(
        demand_rps=demand,
        dedicated_servers=needed,
        shared_servers=int(counts.sum()),
        counts=tuple(int(count) for count in counts),
        saving=interval(1 - counts.sum() / needed, resampled),
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


def _rates(columns: Sequence[Line], shared: int, draw: int | None = None) -> Floats:
    """The rates of every column, (tenants, columns), at the estimate or at a draw."""
    rates = [c.rates_rps if draw is None else c.rates_draws_rps[draw] for c in columns]
    alone = np.diag([rate[0] for rate in rates[shared:]])
    return np.column_stack([*rates[:shared], alone])
