"""What a search drives: a system under load, real or simulated, and what is seen of it."""

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
    """A window as seen `elapsed_s` after its start: all requests intended so far, per tenant.

    `client_cpu` is the CPU time of each tenant's client divided by the wall time; `foreign_cpu` is
    the share of the server's cores that processes other than the server used (None: it runs where
    they cannot be seen), `foreign_who` names the one that worked most, and `foreign_gpu` is the
    share of the time in which its GPU worked for others (None: not known, or no GPU). `queue_ms`
    has, per tenant, readings of the server's own queue time: (seconds since the start, mean queue
    time in ms of the requests since the reading before), shape (k, 2); none when the server tells
    none.
    """

    start_ns: int
    elapsed_s: float
    requests: tuple[Requests, ...]
    client_cpu: tuple[float, ...]
    foreign_cpu: float | None = 0.0
    queue_ms: tuple[NDArray[np.float64], ...] = ()
    foreign_gpu: float | None = None
    foreign_who: str = ""

    @property
    def now_ns(self) -> int:
        return self.start_ns + round(self.elapsed_s * 1e9)


class Load(Protocol):
    """A window under way."""

    def until(self, elapsed_s: float) -> Observation:
        """Wait until `elapsed_s` after the start of the window; what was seen by then."""


class System(Protocol):
    """A server under load, real or simulated; requests come by the process `arrivals`."""

    @property
    def arrivals(self) -> Arrivals: ...

    def offer(self, rates_rps: Sequence[float], duration_s: float) -> AbstractContextManager[Load]:
        """Start a window of open-loop arrivals, a rate per tenant; leaving the context ends it."""

    def offer_closed(
        self, in_flight: Sequence[int], duration_s: float
    ) -> AbstractContextManager[Load]:
        """Start a window with so many requests of each tenant always in flight."""

    def until_quiet(self, foreign: float) -> bool:
        """Wait until others use at most that share of the server's cores, and of its GPU's time;
        False where they still do when PATIENCE_S have been spent on all calls together."""
