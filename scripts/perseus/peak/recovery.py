"""Find the bursts of arrivals in a window, and measure how long the server needs to recover from
each burst (docs/explanation/replay.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perseus.peak.attainment import Counts
from perseus.traffic.requests import Requests, Status

BURST: Final = 1.5
"""Each second of a burst has more arrivals than this multiple of the mean number per second."""

CHANCE: Final = 0.001
"""A Poisson process with the mean rate has as many arrivals as a second of a burst in at most this
share of its seconds."""


@dataclass(frozen=True)
class Burst:
    """A burst of arrivals, and the recovery time of the server after the burst.

    The burst lasts from `start_s` to `end_s`, in seconds since the start of the window. `requests`
    is the number of arrivals in this time. `recovery_s` is infinite if the server has not recovered
    before the end of the window.
    """

    start_s: int
    end_s: int
    requests: int
    recovery_s: float


def bursts(counts: Counts) -> list[tuple[int, int]]:
    """Return the start and the end of each burst in seconds since the start of the window.

    A second belongs to a burst if its arrivals exceed both thresholds, BURST and CHANCE. `counts`,
    shape (n,), contains the number of arrivals in each second of the window.
    """
    from scipy import stats  # imported here, since the import takes longer than most jobs

    mean = counts.mean()
    least = max(BURST * mean, stats.poisson.ppf(1 - CHANCE, mean)) if mean else 0.0
    edges = np.flatnonzero(np.diff(np.concatenate([[False], counts > least, [False]])))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def recoveries(requests: Requests, start_ns: int, back: NDArray[np.bool_]) -> list[Burst]:
    """Return the bursts of a window, each with its recovery time. The window begins at `start_ns`.

    `back`, shape (n,), says for each second of the window whether the requests of this second keep
    the SLA. The recovery time runs from the end of a burst until two conditions are true: all
    requests that arrived before the end of the burst have ended, and a second has begun whose
    requests keep the SLA. If a burst begins before the server has recovered from the previous
    burst, both count as one burst.
    """
    seconds = (requests.intended_ns - start_ns) // 10**9
    counts = np.bincount(seconds, minlength=len(back))
    found: list[Burst] = []
    for start_s, end_s in bursts(counts):
        if found and start_s < found[-1].end_s + found[-1].recovery_s:
            start_s = found.pop().start_s
        arrived = int(counts[start_s:end_s].sum())
        drained_s = _drained_s(requests, start_ns + end_s * 10**9)
        recovery_s = max(0.0, drained_s, _first(back[end_s:]))
        found.append(Burst(start_s, end_s, arrived, recovery_s))
    return found


def most_in_flight(requests: Requests) -> int:
    """Return the largest number of requests that were in flight at the same moment. A request is in
    flight from its intended send time until it ends."""
    due = requests.status != Status.UNSENT
    ended_ns = np.sort(requests.done_ns[due & (requests.status != Status.PENDING)])
    intended_ns = requests.intended_ns[due]
    before = np.searchsorted(ended_ns, intended_ns, side="right")
    return int(np.max(np.arange(1, len(intended_ns) + 1) - before, initial=0))


def _drained_s(requests: Requests, until_ns: int) -> float:
    """Return the seconds from `until_ns` until all requests with an earlier intended send time have
    ended; infinite if such a request is still pending."""
    part = requests.between(int(requests.intended_ns[0]), until_ns)
    if part.count(Status.PENDING):
        return np.inf
    return (int(part.done_ns.max(initial=0)) - until_ns) / 1e9


def _first(back: NDArray[np.bool_]) -> float:
    """Return the index of the first true value; infinity if no value is true. The result for an
    empty array is 0: the burst ends with the window."""
    return float(back.argmax()) if back.any() else np.inf if len(back) else 0.0
