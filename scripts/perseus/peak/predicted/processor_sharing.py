"""A processor that tenants share: each has a queue of its own, and all that have work are served at
once, each at an equal part of the speed.

So does an operating system that lets the models of a server take turns on a core, thousands of
times in a second; a GPU does about the same where their kernels run side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perseus.peak.predicted.solo import Solo
from perseus.peak.stats import Floats
from perseus.traffic.arrivals import Arrivals

REQUESTS, OF_EACH, MOST = 10_000, 1_000, 40_000
"""Of a long run, at least in all and of each tenant, and at most in all."""

HALVINGS = 8
"""Of the scales among which the limit is found: to 1 %."""


def limit_scale(
    solos: Sequence[Solo], rates_rps: Sequence[float], arrivals: Arrivals, high: float
) -> float:
    """The multiple of `rates_rps`, below `high`, at which the first tenant's SLA gives way."""
    wanted_s = max(REQUESTS / sum(rates_rps), OF_EACH / min(rates_rps))
    duration_s = min(wanted_s, MOST / sum(rates_rps))
    times_s, work_s = [], []
    for i, (solo, rate_rps) in enumerate(zip(solos, rates_rps, strict=True)):
        rng = np.random.default_rng([0, i])
        times_s.append(arrivals.times_s(rate_rps, duration_s, rng))
        work_s.append(rng.choice(solo.work_s, len(times_s[-1])))

    def keeps_slas(scale: float) -> bool:
        """The same requests, at another pace."""
        waited_s = latencies_s([times / scale for times in times_s], work_s)
        return all(
            np.mean(waited + solo.away_s > solo.sla.latency_ms / 1000) <= solo.sla.allowed
            for waited, solo in zip(waited_s, solos, strict=True)
        )

    low = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps_slas(middle) else (low, middle)
    return (low + high) / 2


def latencies_s(arrivals_s: Sequence[Floats], work_s: Sequence[Floats]) -> list[Floats]:
    """How long each tenant's requests take, first come first served among its own.

    One array per tenant, the arrivals ascending; `work_s` is what a request takes alone.
    """
    works = [work.tolist() for work in work_s]
    tenants = np.repeat(np.arange(len(works)), [len(each) for each in arrivals_s])
    times_s = np.concatenate(arrivals_s)
    order = np.argsort(times_s, kind="stable")
    done_s: list[list[float]] = [[] for _ in works]
    arrived = [0] * len(works)
    # What each busy tenant has been served since the start, as if it had always been busy, and at
    # which of that its oldest request is done.
    now_s, served_s = 0.0, 0.0
    ends_s: dict[int, float] = {}

    def serve_until(time_s: float) -> None:
        nonlocal now_s, served_s
        while ends_s:
            first = min(ends_s, key=ends_s.__getitem__)
            at_s = now_s + (ends_s[first] - served_s) * len(ends_s)
            if at_s > time_s:
                served_s += (time_s - now_s) / len(ends_s)
                break
            now_s, served_s = at_s, ends_s[first]
            done_s[first].append(at_s)
            if len(done_s[first]) < arrived[first]:
                ends_s[first] = served_s + works[first][len(done_s[first])]
            else:
                del ends_s[first]
        now_s = time_s

    for time_s, tenant in zip(times_s[order].tolist(), tenants[order].tolist(), strict=True):
        serve_until(time_s)
        arrived[tenant] += 1
        if tenant not in ends_s:
            ends_s[tenant] = served_s + works[tenant][len(done_s[tenant])]
    serve_until(np.inf)
    return [np.array(done) - each for done, each in zip(done_s, arrivals_s, strict=True)]
