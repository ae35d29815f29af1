"""Random servers, one for each search, on which no constant of the method was tuned.

The SLAs of these servers are not round numbers, so that rounding errors can occur.
"""

from __future__ import annotations

import numpy as np

from benchmarks.search_cost import START
from benchmarks.servers import Server, gamma, hyperexponential, jittered, single
from benchmarks.serving import SEED
from benchmarks.simulation import deterministic, exponential
from perseus.study.sla import Sla

WORK_S = (0.0008, 0.15)
"""Range of mean service times, from a small CNN on a GPU to a large CNN on a CPU core."""

PERCENTILES = (90.0, 95.0, 99.0)
SLA_WORKS = (10.0, 60.0)
"""Range of SLAs in units of the mean service time. Even without a queue, the p99 of the most
variable service times is 9.0 times their mean."""

WORKS = (deterministic, jittered, exponential, hyperexponential, lambda mean_s: gamma(mean_s, 0.5))


def drawn(seed: int) -> Server:
    rng = np.random.default_rng([SEED, seed, 2])
    mean_s, of_work = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in (WORK_S, SLA_WORKS))
    work = WORKS[rng.integers(len(WORKS))](mean_s)
    percentile = PERCENTILES[rng.integers(len(PERCENTILES))]
    sla = Sla(percentile=percentile, latency_ms=1000 * mean_s * of_work)
    return single(work, sla, START / mean_s)
