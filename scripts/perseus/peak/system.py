"""The interface that a search drives: a real or simulated system under load."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from perseus.traffic.arrivals import Arrivals
from perseus.traffic.requests import Requests


@dataclass(frozen=True)
class Observation:
    """A window as observed `elapsed_s` after its start: per tenant, all requests with an earlier
    intended send time.

    `client_cpu` is the CPU time of each tenant's client divided by the wall time. `other_cpu_share`
    is the share of the server's cores that other processes used (None: unknown), `other_process`
    names the busiest of them, and `other_gpu_share` is the share of the time in which its GPU
    worked for others (None: unknown, or no GPU). `queue_ms` has, per tenant, readings of the
    server's own queue time: (seconds since the start, mean queue time in ms of the requests since
    the previous reading), shape (k, 2); no rows if the server does not report it.
    """

    start_ns: int
    elapsed_s: float
    requests: tuple[Requests, ...]
    client_cpu: tuple[float, ...]
    other_cpu_share: float | None = 0.0
    queue_ms: tuple[NDArray[np.float64], ...] = ()
    other_gpu_share: float | None = None
    other_process: str = ""

    @property
    def now_ns(self) -> int:
        return self.start_ns + round(self.elapsed_s * 1e9)


class Load(Protocol):
    """A window in progress."""

    def until(self, elapsed_s: float) -> Observation:
        """Wait until `elapsed_s` after the start of the window; return the observation."""


class System(Protocol):
    """A real or simulated server under load, with the arrival process `arrivals`."""

    @property
    def arrivals(self) -> Arrivals: ...

    def offer(self, rates_rps: Sequence[float], duration_s: float) -> AbstractContextManager[Load]:
        """Start a window of open-loop arrivals, a rate per tenant; leaving the context ends it."""

    def offer_closed(
        self, in_flight: Sequence[int], duration_s: float
    ) -> AbstractContextManager[Load]:
        """Start a window with a fixed number of requests of each tenant in flight."""

    def wait_until_idle(self, other_load: float) -> bool:
        """Wait until other processes use at most this share of the server's cores and GPUs;
        False if they still do after PATIENCE_S over all calls."""
