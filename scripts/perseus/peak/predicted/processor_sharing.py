"""A processor that tenants share: each has a queue of its own, and all that have work are served at
once, each at an equal part of the speed.

So does an operating system that lets the models of a server take turns on a core, thousands of
times in a second; a GPU does about the same where their kernels run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perseus.peak.lindley import idle_s
from perseus.peak.predicted.solo import Solo
from perseus.peak.stats import Floats
from perseus.traffic.arrivals import Arrivals

REQUESTS, OF_EACH, MOST = 10_000, 1_000, 40_000
"""Of a long run, at least in all and of each tenant, and at most in all."""

ROUNDING = 1e-9
"""Sums of work that differ by less are the same."""

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

    latencies_s = served(times_s, work_s)

    def keeps_slas(scale: float) -> bool:
        return all(
            np.mean(waited_s + solo.away_s > solo.sla.latency_ms / 1000) <= solo.sla.allowed
            for waited_s, solo in zip(latencies_s(scale), solos, strict=True)
        )

    low = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps_slas(middle) else (low, middle)
    return (low + high) / 2


def served(
    arrivals_s: Sequence[Floats], work_s: Sequence[Floats]
) -> Callable[[float], list[Floats]]:
    """How long each tenant's requests take, first come first served among its own, where they come
    so many times as fast.

    One array per tenant, the arrivals ascending; `work_s` is what a request takes alone.
    """
    if len(arrivals_s) == 2:
        return TwoTenants.of(arrivals_s, work_s).latencies_s
    return lambda pace: _of_any([each / pace for each in arrivals_s], work_s)


@dataclass(frozen=True)
class TwoTenants:
    """The n requests of two tenants in the order in which they come: when they do, what each takes
    alone, and which are whose; shape (n,).

    Six times as fast as from one event to the next, and most mixes are of two. While both tenants
    have work left, the difference between theirs stays; once one has none, it is all that is left
    in all. That much is known, as the processor never rests from work.
    """

    times_s: Floats
    work_s: Floats
    of_second: NDArray[np.bool_]

    @classmethod
    def of(cls, arrivals_s: Sequence[Floats], work_s: Sequence[Floats]) -> TwoTenants:
        times_s = np.concatenate(arrivals_s)
        order = np.argsort(times_s, kind="stable")
        of_second = np.arange(len(times_s)) >= len(arrivals_s[0])
        return cls(times_s[order], np.concatenate(work_s)[order], of_second[order])

    def latencies_s(self, pace: float) -> list[Floats]:
        times_s = self.times_s / pace
        # Before each arrival: what is left in all, and of the first tenant more than of the second.
        left_s = np.maximum(self._before_s + idle_s(times_s, self._before_s) - times_s, 0.0)
        more_s = np.array(_held_within(left_s.tolist(), self._more_s))
        return [
            tenant.latencies_s(times_s, left_s, (left_s + sign * more_s) / 2)
            for tenant, sign in zip(self._tenants, (1, -1), strict=True)
        ]

    @cached_property
    def _before_s(self) -> Floats:
        """The work of all requests before each."""
        return np.cumsum(self.work_s) - self.work_s

    @cached_property
    def _more_s(self) -> list[float]:
        return np.where(self.of_second, -self.work_s, self.work_s).tolist()

    @cached_property
    def _tenants(self) -> tuple[_Tenant, _Tenant]:
        return _Tenant.of(self.work_s, ~self.of_second), _Tenant.of(self.work_s, self.of_second)


@dataclass(frozen=True)
class _Tenant:
    """One of the two: at which places its requests stand, what it has asked for before each request
    of both, and by the end of each of its own, and what the other asks for with each."""

    places: NDArray[np.int64]
    before_s: Floats
    wanted_s: Floats
    others_s: Floats

    @classmethod
    def of(cls, work_s: Floats, mine: NDArray[np.bool_]) -> _Tenant:
        own_s = np.where(mine, work_s, 0.0)
        asked_s = np.cumsum(own_s)
        return cls(np.flatnonzero(mine), asked_s - own_s, asked_s[mine], work_s - own_s)

    def latencies_s(self, times_s: Floats, left_s: Floats, own_s: Floats) -> Floats:
        """Before each request of both so much work was left, so much of it this tenant's own."""
        served_s = self.before_s - own_s
        # The last request before which this one was not done; what then was left, and came with
        # that request, of the other tenant's work takes half of the processor.
        last = np.searchsorted(served_s, self.wanted_s * (1 - ROUNDING)) - 1
        needed_s = self.wanted_s - served_s[last]
        others_s = (left_s - own_s + self.others_s)[last]
        return times_s[last] + needed_s + np.minimum(needed_s, others_s) - times_s[self.places]


def _held_within(most: Sequence[float], steps: Sequence[float]) -> list[float]:
    """The sum of the steps before each, had it never been further from 0 than `most` says there."""
    found, held = [], 0.0
    for limit, step in zip(most, steps, strict=True):
        if held > limit:
            held = limit
        elif held < -limit:
            held = -limit
        found.append(held)
        held += step
    return found


def _of_any(arrivals_s: Sequence[Floats], work_s: Sequence[Floats]) -> list[Floats]:
    """Of any number of tenants, from one event to the next."""
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
