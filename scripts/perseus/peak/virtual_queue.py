"""Simulate a virtual queue: a server that serves the requests of all tenants one after another, in
the order of arrival."""

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
    """A single server with one queue for all tenants. `work_s` and `spare_s` have one entry per
    tenant.

    The service times of requests are drawn from `work_s` and multiplied by `slowness`. If
    `observed` is false, `work_s` contains latencies without load, and `spare_s` is the time in
    seconds that the SLA leaves for waiting. If `observed` is true, `work_s` contains service times
    under load, and `spare_s` is the time that the SLA leaves for waiting and service together.
    """

    work_s: tuple[Floats, ...]
    spare_s: tuple[float, ...]
    observed: bool = False
    slowness: float = 1.0

    @classmethod
    def of(cls, unloaded_ms: Sequence[Floats], limits_ms: Sequence[float]) -> VirtualQueue:
        """Return a virtual queue that uses the latencies without load as service times.

        `limits_ms` contains the latency limits of the SLAs.
        """
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
        """Return, for each request of a tenant, the time in seconds to compare with `spare_s`;
        shape (draws, m).

        This time is the waiting time or, if `observed` is true, the waiting time plus the service
        time. If the time exceeds `spare_s`, the request is late.
        """
        waits_s = drawn.waits_s(tenant, self.slowness)
        if not self.observed:
            return waits_s
        return waits_s + self.slowness * drawn.work_s[:, drawn.places[tenant]]

    def draw(self, arrivals_s: Sequence[Floats], draws: int, first: int = 0) -> Drawn:
        """Draw `draws` sets of service times for the requests of all tenants. `first` is the seed
        of the first set, so calls with equal arguments return equal draws."""
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
    """The ascending arrival times of n requests of all tenants, and draws of their service times,
    shape (draws, n).

    The requests of tenant i are at the indices `places[i]`, in the order of arrival.
    """

    arrival_s: Floats
    work_s: Floats
    places: tuple[NDArray[np.int64], ...]

    def waits_s(self, tenant: int, slowness: float) -> Floats:
        """Return the waiting times of a tenant's requests in seconds; shape (draws, m). The factor
        `slowness` multiplies all service times. The queue is empty before the first request."""
        before_s = slowness * self._before_s
        waits_s = before_s + idle_s(self.arrival_s, before_s) - self.arrival_s
        return waits_s if len(self.places) == 1 else waits_s[:, self.places[tenant]]

    @cached_property
    def _before_s(self) -> Floats:
        """Return, for each request, the total service time of all earlier requests; shape (draws,
        n)."""
        return np.cumsum(self.work_s, axis=1) - self.work_s


@dataclass(frozen=True)
class LongRun:
    """A simulation of the steady state of a virtual queue, with many requests.

    The requests arrive at a total rate of one request per second. For another rate, the class
    scales the gaps between these arrivals. Because all rates have the same random numbers, the
    share of late requests is a smooth function of the rate.
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
        """Draw the arrival times and service times of about `requests` requests.

        `shares` contains each tenant's share of the requests; the sum is 1. Calls with the same
        `run` (the index of the simulation) draw the same random numbers.
        """
        times = [
            _times_s(arrivals, share, requests, run, tenant) for tenant, share in enumerate(shares)
        ]
        return cls(queue, queue.draw(times, draws=1, first=run))

    def late_share(self, tenant: int, rate_rps: float) -> float:
        """Return the share of a tenant's requests that are late. `rate_rps` is the total rate of
        all tenants."""
        # The time unit is the mean time between arrivals, so the rate multiplies all other times.
        (spent,) = self.queue.slowed(rate_rps).spent_s(self.drawn, tenant)
        late = np.count_nonzero(spent > rate_rps * self.queue.spare_s[tenant])
        return late / len(spent) if len(spent) else 0.0


# All estimates of a search need the same arrivals. 32 entries are enough for two tenants.
@lru_cache(maxsize=32)
def _times_s(arrivals: Arrivals, share: float, requests: int, run: int, tenant: int) -> Floats:
    times_s = arrivals.times_s(share, requests, np.random.default_rng([run, tenant]))
    times_s.flags.writeable = False
    return times_s
