"""Simulated servers in virtual time: systems of known limit, to test and to bench a search."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from perseus.arrivals import Arrivals
from perseus.window import Observation, Requests, Status

Floats = NDArray[np.float64]
Service = Callable[[np.random.Generator, int], Floats]


def exponential(mean_s: float) -> Service:
    return lambda rng, n: rng.exponential(mean_s, n)


def deterministic(mean_s: float) -> Service:
    return lambda rng, n: np.full(n, mean_s)


@dataclass
class SimulatedServer:
    """A first-come first-served queue before `workers` workers, shared by all tenants.

    `service[i]` draws the service times of tenant i in seconds. `leak` is the share of requests
    that are never answered; during `stall` = (start_s, length_s) of each window nothing is served;
    `drift_per_s` slows the server down by that fraction each second since its first window;
    `send_lag_s` delays every send, as a slow client would.
    """

    service: Sequence[Service]
    rng: np.random.Generator
    workers: int = 1
    leak: float = 0.0
    stall: tuple[float, float] | None = None
    drift_per_s: float = 0.0
    send_lag_s: float = 0.0
    arrivals: Arrivals = field(default_factory=Arrivals)
    clock_s: float = 1.0
    offered_s: float = 0.0
    offered_requests: int = 0

    @contextmanager
    def offer(self, rates_rps: Sequence[float], duration_s: float) -> Iterator[SimulatedLoad]:
        """A window; virtual time goes on only as far as the window is looked at."""
        start_s = self.clock_s
        times = [self.arrivals.times_s(rate, duration_s, self.rng) for rate in rates_rps]
        done = self._serve(times, start_s)
        load = SimulatedLoad(start_s, times, done, self.send_lag_s)
        yield load
        self.clock_s = start_s + load.elapsed_s
        self.offered_s += load.elapsed_s
        self.offered_requests += sum(int(np.sum(t < load.elapsed_s)) for t in times)

    def _serve(self, times: Sequence[Floats], start_s: float) -> list[Floats]:
        """Completion times since the start of the window, infinite where a request leaks."""
        owner = np.concatenate([np.full(len(t), i) for i, t in enumerate(times)])
        arrival = np.concatenate(times)
        work = np.concatenate(
            [draw(self.rng, len(t)) for draw, t in zip(self.service, times, strict=True)]
        )
        work *= 1 + self.drift_per_s * (start_s + arrival)
        order = np.argsort(arrival, kind="stable")
        free = [0.0] * self.workers
        done = np.empty(len(arrival))
        for i in order:
            begin = max(arrival[i], heapq.heappop(free))
            if self.stall and self.stall[0] <= begin < sum(self.stall):
                begin = sum(self.stall)
            done[i] = begin + work[i]
            heapq.heappush(free, done[i])
        done[self.rng.random(len(done)) < self.leak] = np.inf
        return [done[owner == i] for i in range(len(times))]


@dataclass
class SimulatedLoad:
    """One window of a simulated server; arrays are seconds since the start of the window."""

    start_s: float
    arrival_s: Sequence[Floats]
    done_s: Sequence[Floats]
    send_lag_s: float
    elapsed_s: float = 0.0

    def until(self, elapsed_s: float) -> Observation:
        self.elapsed_s = elapsed_s
        tenants = []
        for arrival, done in zip(self.arrival_s, self.done_s, strict=True):
            so_far = arrival < elapsed_s
            arrival, done = arrival[so_far], done[so_far]
            pending = done > elapsed_s
            tenants.append(
                Requests(
                    intended_ns=self._ns(arrival),
                    sent_ns=self._ns(arrival + self.send_lag_s),
                    done_ns=np.where(pending, 0, self._ns(np.where(pending, 0, done))),
                    status=np.where(pending, Status.PENDING, Status.OK).astype(np.uint8),
                )
            )
        start_ns = round(self.start_s * 1e9)
        return Observation(start_ns, elapsed_s, tuple(tenants), (0.0,) * len(tenants))

    def _ns(self, seconds: Floats) -> NDArray[np.int64]:
        return np.round((self.start_s + seconds) * 1e9).astype(np.int64)
