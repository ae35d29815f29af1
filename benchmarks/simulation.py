"""Simulated servers in virtual time, with known limits, for tests and benchmarks of searches."""

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
"""Function that returns completion times of requests from their arrival times (ascending) and
their service times. All times are in seconds."""


MAX_ROUNDS = 20_000
"""In a simulated closed loop with n requests in flight, the requests form n chains: each response
triggers the next request of its chain. A chain has at most MAX_ROUNDS requests. In a window on a
real server, chains are shorter."""

Slowness = Callable[[Floats], Floats]
"""Function of times in seconds that returns factors on service times."""


def even(seconds: Floats) -> Floats:
    return np.ones(len(seconds))


def drifting(per_s: float, until_s: float = np.inf) -> Slowness:
    """Return factors on service times that rise by `per_s` each second, until `until_s`."""
    return partial(_drifting, per_s, until_s)


def _drifting(per_s: float, until_s: float, seconds: Floats) -> Floats:
    return 1 + per_s * np.minimum(seconds, until_s)


def wandering(share: float, period_s: float) -> Slowness:
    """Return factors on service times that follow a sine with the amplitude `share`."""
    return partial(_wandering, share, period_s)


def _wandering(share: float, period_s: float, seconds: Floats) -> Floats:
    return 1 + share * np.sin(2 * np.pi * seconds / period_s)


def as_recorded(step_s: float, factors: Floats) -> Slowness:
    """Return a function of time that replays recorded factors. Each factor holds for `step_s` s.
    After the last factor, the recording starts again."""
    return partial(_as_recorded, step_s, factors)


def _as_recorded(step_s: float, factors: Floats, seconds: Floats) -> Floats:
    return factors[(seconds / step_s).astype(np.int64) % len(factors)]


STEP_S = 0.05
"""Time step in seconds between two factors of a simulated host."""


@dataclass(frozen=True)
class Host:
    """How the speed of a host changes: a Gaussian process with memory, and bursts of other load.

    The logarithm of service times has the standard deviation `deviation` and the correlation time
    `memory_s`. About every `burst_every_s`, service times are `burst_slowness` times as long, for a
    time in the range `burst_s`.
    """

    deviation: float = 0.0
    memory_s: float = 1.0
    burst_every_s: float = np.inf
    burst_s: tuple[float, float] = (0.2, 2.0)
    burst_slowness: float = 2.0

    def factors(self, rng: np.random.Generator, seconds: float) -> Floats:
        """Return factors on service times, one for each STEP_S."""
        steps = int(seconds / STEP_S)
        kept = np.exp(-STEP_S / self.memory_s)
        shocks = rng.standard_normal(steps) * self.deviation * np.sqrt(1 - kept**2)
        factors = np.exp(lfilter([1.0], [1.0, -kept], shocks))
        for begin in np.flatnonzero(rng.random(steps) < STEP_S / self.burst_every_s):
            factors[begin : begin + int(rng.uniform(*self.burst_s) / STEP_S)] *= self.burst_slowness
        return np.asarray(factors)


@dataclass(frozen=True)
class RecordedHost:
    """A host with recorded speed changes: `recorded` has factors on service times, one for each
    `step_s`."""

    recorded: Floats
    step_s: float

    def factors(self, rng: np.random.Generator, seconds: float) -> Floats:
        """Return factors on service times, one for each STEP_S, from a random position of the
        recording."""
        each = np.repeat(self.recorded, round(self.step_s / STEP_S))
        return np.resize(np.roll(each, -rng.integers(len(each))), int(seconds / STEP_S))


# Partial functions instead of closures: only partial functions can be sent to other processes.


def exponential(mean_s: float) -> Service:
    return partial(_exponential, mean_s)


def _exponential(mean_s: float, rng: np.random.Generator, n: int) -> Floats:
    return rng.exponential(mean_s, n)


def deterministic(mean_s: float) -> Service:
    return partial(_deterministic, mean_s)


def _deterministic(mean_s: float, rng: np.random.Generator, n: int) -> Floats:
    return np.full(n, mean_s)


def workers(count: int) -> Discipline:
    """Return the first-come first-served discipline with `count` workers."""
    return partial(_by_workers, count)


def _by_workers(count: int, arrival: Floats, work: Floats) -> Floats:
    free, done = [0.0] * count, np.empty(len(arrival))
    for i, arrived_s in enumerate(arrival):
        done[i] = max(arrived_s, heapq.heappop(free)) + work[i]
        heapq.heappush(free, done[i])
    return done


def batching(max_batch_size: int, max_queue_delay_s: float, overhead_s: float) -> Discipline:
    """Return a discipline with one worker, which serves batches. A batch takes `overhead_s` plus
    the service times of its requests.

    When the worker is free, a batch starts as soon as it is full or its first request has waited
    `max_queue_delay_s`.
    """
    return partial(_in_batches, max_batch_size, max_queue_delay_s, overhead_s)


def _in_batches(
    max_batch_size: int, max_queue_delay_s: float, overhead_s: float, arrival: Floats, work: Floats
) -> Floats:
    done, first, free_s = np.empty(len(arrival)), 0, 0.0
    arrived_s = arrival.tolist()  # single items are much faster to read from a list
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
    """Return completion times for tenants that each have their own instance, which serves first
    come, first served. Busy instances share a core equally. While several instances are busy,
    service times are longer by the share `interference`."""
    done = np.empty(len(arrival))
    queues: dict[int, deque[int]] = defaultdict(deque)
    # For each busy tenant i: (value of `each_s` at which its request ends, i). `each_s` is the
    # service time that each busy instance has completed so far.
    ends: list[tuple[float, int]] = []
    now_s, each_s, coming = 0.0, 0.0, 0

    def slices() -> float:
        """Return how many seconds each busy instance needs to complete one second of service
        time."""
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
    """Return completion times for one worker that serves all requests at the same time."""
    return one_core(arrival, work, np.arange(len(work)))


@dataclass
class SimulatedServer:
    """A server with one queue for all tenants and a queueing `discipline` or, if `instances` is
    true, a server whose instances share one core (`one_core`).

    By default, one worker serves requests first come, first served. `service[i]` draws service
    times of tenant i in seconds. `leak` is the share of requests without a response. In each
    window, the server stops for `stall[1]` seconds, beginning `stall[0]` seconds after the start of
    the window. `slowness` returns factors on service times for times since the start of the first
    window. As with a slow client, every send is late by `send_lag_s` plus `lag_per_request_s` for
    each request in flight.
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
        """Yield a window with these rates. After the window, virtual time is the time of the last
        call of `SimulatedLoad.until`."""
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
        """Yield a window with a constant number of requests of each tenant in flight."""
        mean_s = [draw(np.random.default_rng(0), 100).mean() for draw in self.service]
        shortest_s = min(work for work, n in zip(mean_s, in_flight, strict=True) if n)
        rounds = int(min(1.5 * duration_s / shortest_s, MAX_ROUNDS))
        owner = np.tile(np.repeat(np.arange(len(in_flight)), in_flight), rounds + 1)
        done, queued = self._serve(np.zeros(len(owner)), owner, self._work_s(owner))
        # Each response triggers the next request.
        times = [
            np.append(np.zeros(n), np.sort(each))[: len(each)]
            for n, each in zip(in_flight, done, strict=True)
        ]
        done = [np.sort(each) for each in done]
        lags = [np.zeros(len(each)) for each in times]
        with self._passing(SimulatedLoad(self.clock_s, times, done, queued, lags)) as load:
            yield load

    def wait_until_idle(self, other_load: float) -> bool:
        """Return False: the host does not become idle, because the other processes on a simulated
        host never end."""
        return False

    @contextmanager
    def _passing(self, load: SimulatedLoad) -> Iterator[SimulatedLoad]:
        yield load
        self.clock_s += load.elapsed_s
        self.offered_s += load.elapsed_s
        self.offered_requests += sum(int(np.sum(t < load.elapsed_s)) for t in load.arrival_s)

    def _work_s(self, owner: NDArray[np.int64]) -> Floats:
        work = np.empty(len(owner))
        for i, draw in enumerate(self.service):
            work[owner == i] = draw(self.rng, int(np.sum(owner == i)))
        return work

    def _serve(
        self, arrival: Floats, owner: NDArray[np.int64], work: Floats
    ) -> tuple[list[Floats], list[Floats]]:
        """Return completion times and queue times of each tenant's requests. A request without a
        response never completes."""
        # A service time depends on the time at which the server begins the request. In a closed
        # loop, the requests follow each other without a pause. In an open loop, the arrival time is
        # close enough to the begin time.
        closed, slowed = not arrival.any(), work
        for _ in range(3 if closed else 1):
            begins = np.cumsum(slowed) - slowed if closed else arrival
            slowed = work * self.slowness(self.clock_s + begins)
        work = slowed
        order = np.argsort(arrival, kind="stable")
        stall_s, length_s = self.stall
        # Serve the requests on a clock that stops while the server stalls.
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
    """One window of a simulated server. Arrays have times in seconds since the start of the
    window."""

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
        # A client that sends late also uses much CPU time.
        cpu = tuple(0.5 if lag.any() else 0.0 for lag in self.lag_s)
        return Observation(start_ns, elapsed_s, tuple(tenants), cpu, queue_ms=tuple(readings))

    def _ns(self, seconds: Floats) -> NDArray[np.int64]:
        return np.round((self.start_s + seconds) * 1e9).astype(np.int64)


def _in_flight(arrival_s: Floats, done_s: Floats) -> Floats:
    """Return the number of requests of all tenants in flight at each arrival."""
    before = np.searchsorted(np.sort(arrival_s), arrival_s)
    return (before - np.searchsorted(np.sort(done_s), arrival_s)).astype(float)


def _readings(done_s: Floats, queued_s: Floats, elapsed_s: float) -> Floats:
    """Return an array of shape (k, 2). Each row has a time in seconds, and the mean queue time in
    ms of the requests that were completed in the second before this time."""
    seconds = np.arange(1, int(elapsed_s) + 1, dtype=float)
    parts = [queued_s[(done_s > second - 1) & (done_s <= second)] for second in seconds]
    kept = [(second, 1000 * p.mean()) for second, p in zip(seconds, parts, strict=True) if len(p)]
    return np.array(kept).reshape(-1, 2)
