"""A virtual queue: what one first-come first-served server would do with given arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from perseus.arrivals import Arrivals

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class VirtualQueue:
    """A single server with a queue for all tenants; one entry per tenant.

    `work_s` holds service times, from which those of requests are drawn, and `slowness` is a factor
    on all of them. `spare_s` is the time that the SLA leaves for waiting or, where `observed` says
    that the work was read off the real requests, for waiting and work. So many neighbours as `run`
    says are drawn together. `batching` says that the
    real server joins requests, which this one does not.
    """

    work_s: tuple[Floats, ...]
    spare_s: tuple[float, ...]
    observed: bool = False
    run: int = 1
    slowness: float = 1.0
    batching: bool = False

    def slowed(self, factor: float) -> VirtualQueue:
        return replace(self, slowness=self.slowness * factor)

    def utilisation(self, rates_rps: Sequence[float]) -> float:
        work_s = (rate * float(np.mean(w)) for rate, w in zip(rates_rps, self.work_s, strict=True))
        return self.slowness * sum(work_s)

    def spent_s(self, drawn: Drawn, tenant: int) -> Floats:
        """What a tenant's requests spend of `spare_s`; shape (draws, m)."""
        waits_s = drawn.waits_s(tenant, self.slowness)
        if not self.observed:
            return waits_s
        mine = slice(drawn.ends[tenant], drawn.ends[tenant + 1])
        return waits_s + self.slowness * drawn.work_s[:, mine]

    def draw(self, arrivals_s: Sequence[Floats], draws: int, first: int = 0) -> Drawn:
        """Draw the work of each tenant's requests; the same work whenever it is called alike."""
        work_s = np.empty((draws, sum(map(len, arrivals_s))))
        for i in range(draws):
            rng = np.random.default_rng(first + i)
            pairs = zip(self.work_s, map(len, arrivals_s), strict=True)
            work_s[i] = np.concatenate(
                [_chosen(work, count, self.run, rng) for work, count in pairs]
            )
        ends = np.cumsum([0, *map(len, arrivals_s)]).tolist()
        return Drawn(np.concatenate(arrivals_s), work_s, tuple(ends))


def _chosen(work_s: Floats, count: int, run: int, rng: np.random.Generator) -> Floats:
    """So many service times, in runs of neighbours that begin anywhere; shape (count,)."""
    begins = rng.integers(0, len(work_s), -(-count // run))
    places = (begins[:, None] + np.arange(run)).ravel()[:count]
    return work_s[places % len(work_s)]


@dataclass(frozen=True)
class Drawn:
    """Arrivals of n requests, shape (n,), and some draws of their work, shape (draws, n).

    Those of tenant i are in the slice from `ends[i]` to `ends[i + 1]`, in order.
    """

    arrival_s: Floats
    work_s: Floats
    ends: tuple[int, ...]

    def waits_s(self, tenant: int, slowness: float) -> Floats:
        """How long a tenant's requests wait in a queue that is empty at time 0; shape (draws, m).

        The recursion of Lindley (1952), as a running maximum.
        """
        ordered, work_s = self.arrival_s, slowness * self.work_s
        mine = slice(self.ends[tenant], self.ends[tenant + 1])
        if len(self.ends) == 2:
            return _waits(ordered, work_s)
        order = np.argsort(self.arrival_s, kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return _waits(ordered[order], work_s[:, order])[:, places[mine]]


def _waits(arrival_s: Floats, work_s: Floats) -> Floats:
    before = np.cumsum(work_s, axis=1) - work_s
    return before + np.maximum.accumulate(arrival_s - before, axis=1) - arrival_s


def long_run_share(
    queue: VirtualQueue,
    tenant: int,
    rates_rps: Sequence[float],
    arrivals: Arrivals,
    requests: int,
    run: int = 0,
) -> float:
    """The share of a tenant's requests that spend too long, over so many requests in all.

    Calls of the same `run` draw the same random numbers, so that the share is a smooth function of
    the rates.
    """
    if queue.utilisation(rates_rps) >= 1:
        return 1.0
    seconds = requests / sum(rates_rps)
    times = [
        arrivals.times_s(rate, seconds, np.random.default_rng([run, i]))
        for i, rate in enumerate(rates_rps)
    ]
    (spent_s,) = queue.spent_s(queue.draw(times, draws=1, first=run), tenant)
    return float(np.mean(spent_s > queue.spare_s[tenant])) if len(spent_s) else 0.0
