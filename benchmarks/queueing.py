"""True percentiles and limits of simulated first-come first-served queues with Poisson arrivals.

With a million requests, a percentile has an error of less than 1 % at the loads of the benchmarks.
"""

from __future__ import annotations

import numpy as np

from benchmarks.simulation import Service
from perseus.peak import stats
from perseus.peak.lindley import departures_s
from perseus.peak.stats import Floats
from perseus.study.sla import Sla

REQUESTS = 1_000_000


def stalling(service_s: float, stall_s: float, every: int) -> Service:
    """Return service times of `service_s`, plus `stall_s` for every `every`-th request."""

    def draw(rng: np.random.Generator, n: int) -> Floats:
        served = np.arange(1, n + 1)
        return service_s + np.where(served % every == 0, stall_s, 0.0)

    return draw


def percentile_ms(
    rate_rps: float, service: Service, percent: float, overhead_ms: float = 0.0
) -> float:
    """Return the true percentile of the latency, which includes `overhead_ms` outside the queue."""
    rng = np.random.default_rng(0)
    arrival_s = np.cumsum(rng.exponential(1 / rate_rps, REQUESTS))
    latency_s = departures_s(arrival_s, service(rng, REQUESTS)) - arrival_s
    return stats.percentile(latency_s, percent) * 1000 + overhead_ms


def limit_rps(service: Service, sla: Sla, overhead_ms: float = 0.0) -> float:
    """Return the rate at which the true percentile equals the limit of the SLA; the rate is exact
    within 0.1 %."""
    low, high = 0.0, 1 / float(np.mean(service(np.random.default_rng(0), 100_000)))
    while high - low > 0.001 * high:
        middle = (low + high) / 2
        if percentile_ms(middle, service, sla.percentile, overhead_ms) <= sla.latency_ms:
            low = middle
        else:
            high = middle
    return (low + high) / 2
