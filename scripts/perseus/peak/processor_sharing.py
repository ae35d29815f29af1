"""Simulate a server with processor sharing: each tenant has its own queue, and all tenants with
waiting requests get equal parts of the speed of the server.

If several models of a server run on one core, the operating system gives each busy model an equal
part of the time of this core. A GPU that runs kernels of several models at the same time divides
its speed in a similar way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perseus.peak.stats import Floats

ROUNDING = 1e-9
"""Relative difference up to which two sums of service times count as equal, because rounding may
cause such a difference."""


def served(
    arrivals_s: Sequence[Floats], work_s: Sequence[Floats], slower: float = 1.0
) -> list[Floats]:
    """Return the latencies of all requests in seconds with processor sharing, one array per
    tenant.

    The server works on the requests of each tenant in the order of arrival. The arrival times of
    each tenant are in ascending order. `work_s` contains the service time in seconds that each
    request needs if no other tenant is busy. While several tenants are busy, the factor `slower`
    multiplies all service times, because the tenants share caches and memory.
    """
    if len(arrivals_s) == 2:
        return _of_two(arrivals_s, work_s, slower)
    return _of_any(arrivals_s, work_s, slower)


def _of_two(arrivals_s: Sequence[Floats], work_s: Sequence[Floats], slower: float) -> list[Floats]:
    """Return the latencies for two tenants. The results are the same as from `_of_any`, in one
    third of the time."""
    joined_s = np.concatenate(arrivals_s)
    order = np.argsort(joined_s, kind="stable")
    of_second = order >= len(arrivals_s[0])
    times_s, works_s = joined_s[order], np.concatenate(work_s)[order]
    left_s = _left_s(times_s.tolist(), works_s.tolist(), of_second.tolist(), 2 * slower)
    return [
        _Tenant.of(works_s, mine).latencies_s(times_s, own_s, others_s, slower)
        for mine, own_s, others_s in ((~of_second, *left_s), (of_second, *left_s[::-1]))
    ]


def _left_s(
    times_s: Sequence[float], works_s: Sequence[float], of_second: Sequence[bool], each: float
) -> tuple[Floats, Floats]:
    """Return the remaining service time in seconds of the first and of the second tenant, just
    before each arrival of either tenant.

    While both tenants are busy, one second of service time takes `each` seconds.
    """
    first, second, now_s = 0.0, 0.0, 0.0
    firsts, seconds = [], []
    for time_s, work, is_second in zip(times_s, works_s, of_second, strict=True):
        left_s = time_s - now_s
        now_s = time_s
        # A search spends most of its time in this loop. Comparisons are faster than calls of min
        # and max.
        if first and second:
            both = left_s / each
            if first < both:
                both = first
            if second < both:
                both = second
            first -= both
            second -= both
            left_s -= both * each
        first = first - left_s if first > left_s else 0.0
        second = second - left_s if second > left_s else 0.0
        firsts.append(first)
        seconds.append(second)
        if is_second:
            second += work
        else:
            first += work
    return np.array(firsts), np.array(seconds)


@dataclass(frozen=True)
class _Tenant:
    """One of two tenants, with times in seconds.

    `places` contains the positions of the tenant's requests among the requests of both tenants. For
    each request of either tenant, `before_s` is the total service time of this tenant's earlier
    requests. `others_s` is the service time of the request if it belongs to the other tenant, and 0
    otherwise. For each request of this tenant, `wanted_s` is the total service time of this
    tenant's requests up to and including the request.
    """

    places: NDArray[np.int64]
    before_s: Floats
    wanted_s: Floats
    others_s: Floats

    @classmethod
    def of(cls, work_s: Floats, mine: NDArray[np.bool_]) -> _Tenant:
        own_s = np.where(mine, work_s, 0.0)
        asked_s = np.cumsum(own_s)
        return cls(np.flatnonzero(mine), asked_s - own_s, asked_s[mine], work_s - own_s)

    def latencies_s(
        self, times_s: Floats, own_s: Floats, others_left_s: Floats, slower: float
    ) -> Floats:
        """Return the latencies of this tenant in seconds.

        `own_s` contains the remaining service time of this tenant, just before each arrival of
        either tenant. `others_left_s` contains the remaining service time of the other tenant, at
        the same moments.
        """
        served_s = self.before_s - own_s
        # For each request, find the last arrival before the end of the request. After this arrival,
        # no new work arrives until the end of the request.
        last = np.searchsorted(served_s, self.wanted_s * (1 - ROUNDING)) - 1
        needed_s = self.wanted_s - served_s[last]
        others_s = (others_left_s + self.others_s)[last]
        longer_s = (2 * slower - 1) * np.minimum(needed_s, others_s)
        return times_s[last] + needed_s + longer_s - times_s[self.places]


def _of_any(arrivals_s: Sequence[Floats], work_s: Sequence[Floats], slower: float) -> list[Floats]:
    """Return the latencies for any number of tenants, by an event-driven simulation."""
    works = [work.tolist() for work in work_s]
    tenants = np.repeat(np.arange(len(works)), [len(each) for each in arrivals_s])
    times_s = np.concatenate(arrivals_s)
    order = np.argsort(times_s, kind="stable")
    done_s: list[list[float]] = [[] for _ in works]
    arrived = [0] * len(works)
    # `served_s` is the work that a tenant would have received since the start if it had always been
    # busy. For each busy tenant, `ends_s` contains the value of `served_s` at which its oldest
    # request ends.
    now_s, served_s = 0.0, 0.0
    ends_s: dict[int, float] = {}

    def each() -> float:
        """Return how many seconds one second of service time takes at present."""
        return len(ends_s) * (slower if len(ends_s) > 1 else 1.0)

    def serve_until(time_s: float) -> None:
        nonlocal now_s, served_s
        while ends_s:
            first = min(ends_s, key=ends_s.__getitem__)
            at_s = now_s + (ends_s[first] - served_s) * each()
            if at_s > time_s:
                served_s += (time_s - now_s) / each()
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
