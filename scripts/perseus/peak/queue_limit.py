"""Find the lowest load at which a simulated server misses an SLA.

`Discipline` lists the queueing disciplines of the simulated server. Every simulation draws the same
random numbers for the same tenant. Therefore the difference between two limits, for example with
different disciplines, has little sampling error (common random numbers: Law, Simulation Modeling
and Analysis, 5th ed., section 11.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from perseus.peak.lindley import departures_s
from perseus.peak.processor_sharing import served
from perseus.peak.stats import Floats
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals

OF_EACH = 50
"""Least number of requests of each tenant in a simulation. With fewer requests, the share of late
requests is too uncertain."""


class Discipline(StrEnum):
    """The rule by which a server divides its time between tenants with waiting requests.

    With processor sharing, all tenants with waiting requests get equal parts of the server's speed.
    With first come, first served, the server works on one request at a time, in the order of
    arrival.
    """

    PROCESSOR_SHARING = "processor_sharing"
    FIRST_COME = "first_come"


class Work(Protocol):
    """A tenant of the simulated server.

    `work_s` contains its service times in seconds, shape (n,). `away_s` is the time in seconds that
    each request spends outside the server.
    """

    @property
    def sla(self) -> Sla: ...
    @property
    def work_s(self) -> Floats: ...
    @property
    def away_s(self) -> float: ...


@dataclass(frozen=True)
class Precision:
    """The number and the sizes of the simulations that compute a limit.

    A simulation has about `requests` requests in total. If this number leaves a tenant with fewer
    than `of_each` requests, the simulation has more requests, but hardly more than `most` in total.
    Each of `halvings` simulations halves the range of possible limits.
    """

    requests: int
    of_each: int
    most: int
    halvings: int


def limit_scale(
    tenants: Sequence[Work],
    rates_rps: Callable[[float], Sequence[float]],
    arrivals: Arrivals,
    discipline: Discipline,
    *,
    high: float,
    precision: Precision,
    slower: float = 1.0,
    streams: Sequence[int] = (),
) -> float:
    """Return the load factor, between 0 and `high`, above which at least one tenant misses its SLA.

    `rates_rps` returns the rate of each tenant at a load factor. `slower` is the factor by which
    sharing the server lengthens service times. With processor sharing, the factor applies only
    while several tenants are busy. With first come, first served, the factor always applies. Tenant
    i uses the random stream streams[i], by default stream i.
    """

    spend_s = _SPENT_S[discipline]

    def keeps_slas(scale: float) -> bool:
        rates = rates_rps(scale)
        wanted_s = max(precision.requests / sum(rates), precision.of_each / min(rates))
        duration_s = min(wanted_s, precision.most / sum(rates))
        times_s, work_s = [], []
        for i, (tenant, rate_rps) in enumerate(zip(tenants, rates, strict=True)):
            stream = streams[i] if streams else i
            rng = np.random.default_rng([0, stream])
            times_s.append(arrivals.times_s(rate_rps, duration_s, rng))
            draw = np.random.default_rng([1, stream])
            work_s.append(draw.choice(tenant.work_s, len(times_s[-1])))
        return all(
            np.mean(spent_s + tenant.away_s > tenant.sla.latency_ms / 1000) <= tenant.sla.allowed
            for spent_s, tenant in zip(spend_s(times_s, work_s, slower), tenants, strict=True)
        )

    low = 0.0
    for _ in range(precision.halvings):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps_slas(middle) else (low, middle)
    return (low + high) / 2


def _in_turn(arrivals_s: Sequence[Floats], work_s: Sequence[Floats], slower: float) -> list[Floats]:
    """Return the times in seconds that requests spend on a server that serves all requests in the
    order of arrival, one array per tenant."""
    times_s, works_s = np.concatenate(arrivals_s), slower * np.concatenate(work_s)
    order = np.argsort(times_s, kind="stable")
    spent_s = np.empty(len(order))
    spent_s[order] = departures_s(times_s[order], works_s[order]) - times_s[order]
    return np.split(spent_s, np.cumsum([len(each) for each in arrivals_s])[:-1])


_SPENT_S = {Discipline.PROCESSOR_SHARING: served, Discipline.FIRST_COME: _in_turn}
