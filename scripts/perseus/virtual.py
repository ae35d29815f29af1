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

    `work_s` holds service times, from which those of requests are drawn; `spare_s` is the waiting
    time that the SLA leaves, `slowness` a factor on all work.
    """

    work_s: tuple[Floats, ...]
    spare_s: tuple[float, ...]
    slowness: float = 1.0

    def slowed(self, factor: float) -> VirtualQueue:
        return replace(self, slowness=self.slowness * factor)

    def utilisation(self, rates_rps: Sequence[float]) -> float:
        work_s = (rate * float(np.mean(w)) for rate, w in zip(rates_rps, self.work_s, strict=True))
        return self.slowness * sum(work_s)

    def waits_s(self, arrivals_s: Sequence[Floats], seed: int) -> list[Floats]:
        """How long each request waits, per tenant, in a queue that is empty at time 0.

        The recursion of Lindley (1952), as a running maximum. The same seed draws the same work.
        """
        rng = np.random.default_rng(seed)
        arrival = np.concatenate(arrivals_s)
        drawn = [rng.choice(w, len(a)) for w, a in zip(self.work_s, arrivals_s, strict=True)]
        work = self.slowness * np.concatenate(drawn)
        order = np.argsort(arrival, kind="stable") if len(arrivals_s) > 1 else slice(None)
        ordered, work = arrival[order], work[order]
        before = np.cumsum(work) - work
        waits = np.empty(len(arrival))
        waits[order] = before + np.maximum.accumulate(ordered - before) - ordered
        return np.split(waits, np.cumsum([len(times) for times in arrivals_s])[:-1])


def long_run_share(
    queue: VirtualQueue,
    tenant: int,
    rates_rps: Sequence[float],
    arrivals: Arrivals,
    requests: int,
) -> float:
    """The share of a tenant's requests that wait too long, over so many requests in all.

    Every call draws the same random numbers, so that the share is a smooth function of the rates.
    """
    if queue.utilisation(rates_rps) >= 1:
        return 1.0
    seconds = requests / sum(rates_rps)
    times = [
        arrivals.times_s(rate, seconds, np.random.default_rng(i))
        for i, rate in enumerate(rates_rps)
    ]
    waits_s = queue.waits_s(times, seed=0)[tenant]
    return float(np.mean(waits_s > queue.spare_s[tenant])) if len(waits_s) else 0.0
