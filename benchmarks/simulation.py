"""Simulated servers in virtual time: systems of known limit, to test and to bench a search."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from perseus.peak.lindley import departures_s
from perseus.peak.stats import Floats
from perseus.peak.system import Observation
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.requests import Requests, Status

Service = Callable[[np.random.Generator, int], Floats]
Discipline = Callable[[Floats, Floats], Floats]
"""(arrival times, ascending; work of each request), in seconds -> completion times."""


MAX_ROUNDS = 20_000
"""Requests one after another in a closed loop: no client sends faster."""

Slowness = Callable[[Floats], Floats]
"""Seconds -> factors on work."""


def even(seconds: Floats) -> Floats:
    return np.ones(len(seconds))


def drifting(per_s: float, until_s: float = np.inf) -> Slowness:
    """Slower by that fraction each second, until a time."""
    return partial(_drifting, per_s, until_s)


def _drifting(per_s: float, until_s: float, seconds: Floats) -> Floats:
    return 1 + per_s * np.minimum(seconds, until_s)


def wandering(share: float, period_s: float) -> Slowness:
    """Slower and faster by that fraction, in a sine."""
    return partial(_wandering, share, period_s)


def _wandering(share: float, period_s: float, seconds: Floats) -> Floats:
    return 1 + share * np.sin(2 * np.pi * seconds / period_s)


def as_recorded(step_s: float, factors: Floats) -> Slowness:
    """Factors that follow each other every `step_s`, from the beginning again after the last."""
    return partial(_as_recorded, step_s, factors)


def _as_recorded(step_s: float, factors: Floats, seconds: Floats) -> Floats:
    return factors[(seconds / step_s).astype(np.int64) % len(factors)]


STEP_S = 0.05
"""Of the speed of a host that wanders."""


@dataclass(frozen=True)
class Host:
    """How the speed of a host wanders: a Gaussian process of memory, and bursts of something else.

    `deviation` is that of the logarithm of the work, which it forgets in `memory_s`. Every
    `burst_every_s`, in the mean, work takes `burst_slowness` times as long for a time between the
    two of `burst_s`.
    """

    deviation: float = 0.0
    memory_s: float = 1.0
    burst_every_s: float = np.inf
    burst_s: tuple[float, float] = (0.2, 2.0)
    burst_slowness: float = 2.0

    def factors(self, rng: np.random.Generator, seconds: float) -> Floats:
        """Factors on work, one for each STEP_S."""
        steps = int(seconds / STEP_S)
        kept = np.exp(-STEP_S / self.memory_s)
        shocks = rng.standard_normal(steps) * self.deviation * np.sqrt(1 - kept**2)
        factors = np.exp(lfilter([1.0], [1.0, -kept], shocks))
        for begin in np.flatnonzero(rng.random(steps) < STEP_S / self.burst_every_s):
            factors[begin : begin + int(rng.uniform(*self.burst_s) / STEP_S)] *= self.burst_slowness
        return np.asarray(factors)


@dataclass(frozen=True)
class RecordedHost:
    """A host whose speed wanders as one did: `recorded` are factors on work, each of `step_s`."""

    recorded: Floats
    step_s: float

    def factors(self, rng: np.random.Generator, seconds: float) -> Floats:
        """Factors on work, one for each STEP_S, from anywhere in the recording on."""
        each = np.repeat(self.recorded, round(self.step_s / STEP_S))
        return np.resize(np.roll(each, -rng.integers(len(each))), int(seconds / STEP_S))


# Partial functions, not closures: processes can hand them to each other.


def exponential(mean_s: float) -> Service:
    return partial(_exponential, mean_s)


def _exponential(mean_s: float, rng: np.random.Generator, n: int) -> Floats:
    return rng.exponential(mean_s, n)


def deterministic(mean_s: float) -> Service:
    return partial(_deterministic, mean_s)


def _deterministic(mean_s: float, rng: np.random.Generator, n: int) -> Floats:
    return np.full(n, mean_s)


def workers(count: int) -> Discipline:
    """First come, first served by `count` workers."""
    return partial(_by_workers, count)


def _by_workers(count: int, arrival: Floats, work: Floats) -> Floats:
    free, done = [0.0] * count, np.empty(len(arrival))
    for i, arrived_s in enumerate(arrival):
        done[i] = max(arrived_s, heapq.heappop(free)) + work[i]
        heapq.heappush(free, done[i])
    return done


def batching(max_batch_size: int, max_queue_delay_s: float, overhead_s: float) -> Discipline:
    """One worker that joins waiting requests: a batch takes `overhead_s` and the work of each.

    A batch leaves when it is full or its first request has waited `max_queue_delay_s`, and the
    worker is free.
    """
    return partial(_in_batches, max_batch_size, max_queue_delay_s, overhead_s)


def _in_batches(
    max_batch_size: int, max_queue_delay_s: float, overhead_s: float, arrival: Floats, work: Floats
) -> Floats:
    done, first, free_s = np.empty(len(arrival)), 0, 0.0
    arrived_s = arrival.tolist()  # of which single ones are had much faster
    while first < len(arrived_s):
        begin_s = max(free_s, arrived_s[first] + max_queue_delay_s)
        full = first + max_batch_size - 1
        if full < len(arrived_s):
            begin_s = min(begin_s, max(free_s, arrived_s[full]))
        waiting = bisect_right(arrived_s, begin_s)
        last = max(first + 1, min(waiting, first + max_batch_size))
        free_s = begin_s + overhead_s + float(work[first:last].sum())
        done[first:last] = free_s
        first = last
    return done


def one_core(
    arrival: Floats, work: Floats, tenant: NDArray[np.int64], interference: float = 0.0
) -> Floats:
    """An instance for each tenant, first come, first served; those at work share a core equally,
    and their work takes longer by `interference` while there are others."""
    done = np.empty(len(arrival))
    queues: dict[int, deque[int]] = defaultdict(deque)
    ends: list[tuple[float, int]] = []  # of the requests at work: (work each gets until then, i)
    now_s, each_s, coming = 0.0, 0.0, 0

    def slices() -> float:
        """Seconds in which each of those at work gets one second of work done."""
        return len(ends) * (1 + interference) if len(ends) > 1 else len(ends)

    while coming < len(arrival) or ends:
        next_s = arrival[coming] if coming < len(arrival) else np.inf
        if ends and (end_s := now_s + (ends[0][0] - each_s) * slices()) <= next_s:
            now_s, (each_s, i) = end_s, heapq.heappop(ends)
            done[queues[i].popleft()] = now_s
            if queues[i]:
                heapq.heappush(ends, (each_s + work[queues[i][0]], i))
        else:
            each_s += (next_s - now_s) / slices() if ends else 0
            now_s, i = next_s, int(tenant[coming])
            queues[i].append(coming)
            if len(queues[i]) == 1:
                heapq.heappush(ends, (each_s + work[coming], i))
            coming += 1
    return done


def processor_sharing(arrival: Floats, work: Floats) -> Floats:
    """One worker that works on all requests at once."""
    return one_core(arrival, work, np.arange(len(work)))


@dataclass
class SimulatedServer:
    """A queue shared by all tenants, served by `discipline`; with `instances`, `one_core` instead.

    By default one worker serves it, first come, first served. `service[i]` draws the work of a
    request of tenant i in seconds. `leak` is the share of requests that are never answered; during
    `stall` = (start_s, length_s) of each window the server stands still; `slowness` is a factor on
    the work of requests by their time since the first window; `send_lag_s` delays every send, as a
    slow client would, and `lag_per_request_s` for each request that is in flight.
    """

    service: Sequence[Service]
    rng: np.random.Generator
    discipline: Discipline = departures_s
    instances: bool = False
    interference: float = 0.0
    leak: float = 0.0
    stall: tuple[float, float] = (0.0, 0.0)
    slowness: Slowness = even
    send_lag_s: float = 0.0
    lag_per_request_s: float = 0.0
    arrivals: Arrivals = field(default_factory=Arrivals)
    clock_s: float = 1.0
    offered_s: float = 0.0
    offered_requests: int = 0

    @contextmanager
    def offer(self, rates_rps: Sequence[float], duration_s: float) -> Iterator[SimulatedLoad]:
        """A window; virtual time goes on only as far as the window is looked at."""
        times = [self.arrivals.times_s(rate, duration_s, self.rng) for rate in rates_rps]
        owner = np.concatenate([np.full(len(t), i) for i, t in enumerate(times)])
        intended, work = np.concatenate(times), self._work_s(owner)
        lag = np.full(len(intended), self.send_lag_s)
        if self.lag_per_request_s:
            punctual, _ = self._serve(intended, owner, work)
            lag += self.lag_per_request_s * _in_flight(intended, np.concatenate(punctual))
        done, queued = self._serve(intended + lag, owner, work)
        lags = [lag[owner == i] for i in range(len(times))]
        with self._passing(SimulatedLoad(self.clock_s, times, done, queued, lags)) as load:
            yield load

    @contextmanager
    def offer_closed(self, in_flight: Sequence[int], duration_s: float) -> Iterator[SimulatedLoad]:
        """A window with so many requests of each tenant always with the server."""
        mean_s = [draw(np.random.default_rng(0), 100).mean() for draw in self.service]
        shortest_s = min(work for work, n in zip(mean_s, in_flight, strict=True) if n)
        rounds = int(min(1.5 * duration_s / shortest_s, MAX_ROUNDS))
        owner = np.tile(np.repeat(np.arange(len(in_flight)), in_flight), rounds + 1)
        done, queued = self._serve(np.zeros(len(owner)), owner, self._work_s(owner))
        # Each request is sent when an answer leaves room for it.
        times = [
            np.append(np.zeros(n), np.sort(each))[: len(each)]
            for n, each in zip(in_flight, done, strict=True)
        ]
        done = [np.sort(each) for each in done]
        lags = [np.zeros(len(each)) for each in times]
        with self._passing(SimulatedLoad(self.clock_s, times, done, queued, lags)) as load:
            yield load

    def wait_until_idle(self, other_load: float) -> bool:
        """A simulated host has others only where a test puts them, and those stay."""
        return False

    @contextmanager
    def _passing(self, load: SimulatedLoad) -> Iterator[SimulatedLoad]:
        yield load
        self.clock_s += load.elapsed_s
        self.offered_s += load.elapsed_s
        self.offered_requests += sum(int(np.sum(t < load.elapsed_s)) for t in load.arrival_s)

    def _work_s(self, owner: NDArray[np.int64]) -> Floats:
        """The work of each request, by its tenant."""
        work = np.empty(len(owner))
        for i, draw in enumerate(self.service):
            work[owner == i] = draw(self.rng, int(np.sum(owner == i)))
        return work

    def _serve(
        self, arrival: Floats, owner: NDArray[np.int64], work: Floats
    ) -> tuple[list[Floats], list[Floats]]:
        """Completion and queue times of each tenant's requests; a request that leaks never ends."""
        # In a closed loop work follows work, elsewhere it begins soon after the request came.
        closed, slowed = not arrival.any(), work
        for _ in range(3 if closed else 1):
            begins = np.cumsum(slowed) - slowed if closed else arrival
            slowed = work * self.slowness(self.clock_s + begins)
        work = slowed
        order = np.argsort(arrival, kind="stable")
        stall_s, length_s = self.stall
        # In the server's own time, which stands still during the stall.
        arrived = arrival - np.clip(arrival - stall_s, 0, length_s)
        done = np.empty(len(arrival))
        if self.instances:
            done[order] = one_core(arrived[order], work[order], owner[order], self.interference)
        else:
            done[order] = self.discipline(arrived[order], work[order])
        done += length_s * (done > stall_s)
        queued = done - arrival - work
        done[self.rng.random(len(done)) < self.leak] = np.inf
        tenants = range(len(self.service))
        return [done[owner == i] for i in tenants], [queued[owner == i] for i in tenants]


@dataclass
class SimulatedLoad:
    """One window of a simulated server; arrays are seconds since the start of the window."""

    start_s: float
    arrival_s: Sequence[Floats]
    done_s: Sequence[Floats]
    queued_s: Sequence[Floats]
    lag_s: Sequence[Floats]
    elapsed_s: float = 0.0

    def until(self, elapsed_s: float) -> Observation:
        self.elapsed_s = elapsed_s
        tenants, readings = [], []
        columns = (self.arrival_s, self.done_s, self.queued_s, self.lag_s)
        for arrival, done, queued, lag in zip(*columns, strict=True):
            readings.append(_readings(done, queued, elapsed_s))
            so_far = arrival < elapsed_s
            arrival, done, lag = arrival[so_far], done[so_far], lag[so_far]
            pending = done > elapsed_s
            tenants.append(
                Requests(
                    intended_ns=self._ns(arrival),
                    sent_ns=self._ns(arrival + lag),
                    done_ns=np.where(pending, 0, self._ns(np.where(pending, 0, done))),
                    status=np.where(pending, Status.PENDING, Status.OK).astype(np.uint8),
                )
            )
        start_ns = round(self.start_s * 1e9)
        # A client that is late by itself has much to do.
        cpu = tuple(0.5 if lag.any() else 0.0 for lag in self.lag_s)
        return Observation(start_ns, elapsed_s, tuple(tenants), cpu, queue_ms=tuple(readings))

    def _ns(self, seconds: Floats) -> NDArray[np.int64]:
        return np.round((self.start_s + seconds) * 1e9).astype(np.int64)


def _in_flight(arrival_s: Floats, done_s: Floats) -> Floats:
    """How many requests are under way when each comes, those of all tenants."""
    before = np.searchsorted(np.sort(arrival_s), arrival_s)
    return (before - np.searchsorted(np.sort(done_s), arrival_s)).astype(float)


def _readings(done_s: Floats, queued_s: Floats, elapsed_s: float) -> Floats:
    """(second, mean queue time in ms of what was completed in the second before), shape (k, 2)."""
    seconds = np.arange(1, int(elapsed_s) + 1, dtype=float)
    parts = [queued_s[(done_s > second - 1) & (done_s <= second)] for second in seconds]
    kept = [(second, 1000 * p.mean()) for second, p in zip(seconds, parts, strict=True) if len(p)]
    return np.array(kept).reshape(-1, 2)
