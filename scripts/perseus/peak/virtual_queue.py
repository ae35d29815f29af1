"""A virtual queue: simulate a first-come first-served server with given arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from perseus.peak.lindley import idle_s
from perseus.peak.stats import Floats, percentile
from perseus.traffic.arrivals import Arrivals


@dataclass(frozen=True)
class VirtualQueue:
    """A single server with one queue for all tenants; one entry per tenant.

    Service times of requests are drawn from `work_s` and multiplied by `slowness`. `spare_s` is the
    time that the SLA leaves for waiting, or for waiting and service if `observed` says that the
    service times were inferred from the real requests.
    """

    work_s: tuple[Floats, ...]
    spare_s: tuple[float, ...]
    observed: bool = False
    slowness: float = 1.0

    @classmethod
    def of(cls, unloaded_ms: Sequence[Floats], limits_ms: Sequence[float]) -> VirtualQueue:
        """Return a queue whose service times are the latencies without load; the SLAs are
        `limits_ms`."""
        return cls(
            work_s=tuple(np.asarray(ms) / 1000 for ms in unloaded_ms),
            spare_s=tuple(
                max(limit_ms - percentile(ms, 50), 0) / 1000
                for limit_ms, ms in zip(limits_ms, unloaded_ms, strict=True)
            ),
        )

    def slowed(self, factor: float) -> VirtualQueue:
        return replace(self, slowness=self.slowness * factor)

    def utilisation(self, rates_rps: Sequence[float]) -> float:
        work_s = (rate * float(np.mean(w)) for rate, w in zip(rates_rps, self.work_s, strict=True))
        return self.slowness * sum(work_s)

    def spent_s(self, drawn: Drawn, tenant: int) -> Floats:
        """The part of `spare_s` that a tenant's requests need; shape (draws, m)."""
        waits_s = drawn.waits_s(tenant, self.slowness)
        if not self.observed:
            return waits_s
        return waits_s + self.slowness * drawn.work_s[:, drawn.places[tenant]]

    def draw(self, arrivals_s: Sequence[Floats], draws: int, first: int = 0) -> Drawn:
        """Draw service times of each tenant's requests; equal calls give equal draws."""
        counts = [len(each) for each in arrivals_s]
        work_s = np.empty((draws, sum(counts)))
        for i in range(draws):
            rng = np.random.default_rng(first + i)
            pairs = zip(self.work_s, counts, strict=True)
            work_s[i] = np.concatenate([rng.choice(work, count) for work, count in pairs])
        arrival_s = np.concatenate(arrivals_s)
        order = np.argsort(arrival_s, kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        ends = np.cumsum(counts)[:-1]
        return Drawn(arrival_s[order], work_s[:, order], tuple(np.split(places, ends)))


@dataclass(frozen=True)
class Drawn:
    """Arrivals of n requests, ascending, shape (n,), and draws of their service times, (draws,
    n).

    The requests of tenant i are at `places[i]`, in order.
    """

    arrival_s: Floats
    work_s: Floats
    places: tuple[NDArray[np.int64], ...]

    def waits_s(self, tenant: int, slowness: float) -> Floats:
        """Waits of a tenant's requests in a queue that is empty at time 0; shape (draws, m)."""
        before_s = slowness * self._before_s
        waits_s = before_s + idle_s(self.arrival_s, before_s) - self.arrival_s
        return waits_s if len(self.places) == 1 else waits_s[:, self.places[tenant]]

    @cached_property
    def _before_s(self) -> Floats:
        """The total work before each request, shape (draws, n)."""
        return np.cumsum(self.work_s, axis=1) - self.work_s


@dataclass(frozen=True)
class LongRun:
    """A virtual queue with one request per second in total, to find its steady state.

    For another rate, the same requests arrive at another pace. The share of late requests is then a
    smooth function of the rate, and is quickly computed for many rates.
    """

    queue: VirtualQueue
    drawn: Drawn

    @classmethod
    def of(
        cls,
        queue: VirtualQueue,
        shares: Sequence[float],
        arrivals: Arrivals,
        requests: int,
        run: int = 0,
    ) -> LongRun:
        """A run of this many requests, divided among the tenants by `shares`, which sum to 1.

        Calls of the same `run` draw the same random numbers.
        """
        times = [
            _times_s(arrivals, share, requests, run, tenant) for tenant, share in enumerate(shares)
        ]
        return cls(queue, queue.draw(times, draws=1, first=run))

    def late_share(self, tenant: int, rate_rps: float) -> float:
        """The exceedance of a tenant at this total rate in requests/s."""
        # The unit is the mean time between arrivals, so service times are multiplied by the rate.
        (spent,) = self.queue.slowed(rate_rps).spent_s(self.drawn, tenant)
        late = np.count_nonzero(spent > rate_rps * self.queue.spare_s[tenant])
        return late / len(spent) if len(spent) else 0.0


@lru_cache(maxsize=32)  # for two tenants; every estimate of a search needs the same values
def _times_s(arrivals: Arrivals, share: float, requests: int, run: int, tenant: int) -> Floats:
    times_s = arrivals.times_s(share, requests, np.random.default_rng([run, tenant]))
    times_s.flags.writeable = False
    return times_s
