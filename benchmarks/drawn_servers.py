"""Servers drawn at random, another one for each search: none that a constant was tuned on.

Their SLAs are as odd as those of users, and not numbers that a computer has exactly.
"""

from __future__ import annotations

import numpy as np

from benchmarks.search_cost import START
from benchmarks.servers import Server, gamma, hyperexponential, jittered, single
from benchmarks.serving import SEED
from benchmarks.simulation import deterministic, exponential
from perseus.study.sla import Sla

WORK_S = (0.0008, 0.15)
"""Mean service times: a small CNN on a GPU, and a large one on a core of a CPU."""

PERCENTILES = (90.0, 95.0, 99.0)
SLA_WORKS = (10.0, 60.0)
"""SLAs, over the mean service time; the p99 of the most variable work is 9.0 times its mean by
itself."""

WORKS = (deterministic, jittered, exponential, hyperexponential, lambda mean_s: gamma(mean_s, 0.5))


def drawn(seed: int) -> Server:
    """The server of that seed."""
    rng = np.random.default_rng([SEED, seed, 2])
    mean_s, of_work = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in (WORK_S, SLA_WORKS))
    work = WORKS[rng.integers(len(WORKS))](mean_s)
    percentile = PERCENTILES[rng.integers(len(PERCENTILES))]
    sla = Sla(percentile=percentile, latency_ms=1000 * mean_s * of_work)
    return single(work, sla, START / mean_s)
