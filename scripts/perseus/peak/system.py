"""Define how a search offers load to a server and gets the measured data. The server can be real or
simulated."""

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
    """The measured data of the first `elapsed_s` seconds of a window.

    For each tenant, `requests` contains the requests with an intended send time in these seconds.
    `client_cpu` contains, for each tenant, the larger of two shares: the share of one core that the
    tenant's busiest client process used, and the share of all client cores that all clients used.
    `other_cpu_share` is the share of the CPU time of the server's cores that other processes used,
    None if unknown. `other_process` names the other process that used most CPU time.
    `other_gpu_share` is the share of the time in which the server's GPU worked for other processes,
    None if this share is unknown or the server has no GPU. `queue_ms` contains, for each tenant,
    readings of the server's queue time, shape (k, 2). A reading consists of two numbers: the time
    in seconds since the start of the window, and the mean queue time in ms of all requests since
    the previous reading.
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
        """Wait until `elapsed_s` seconds after the start of the window, and return the data that
        are measured until then."""


class System(Protocol):
    """A real or simulated server to which a search can offer load. `arrivals` is the arrival
    process of all tenants."""

    @property
    def arrivals(self) -> Arrivals: ...

    def offer(self, rates_rps: Sequence[float], duration_s: float) -> AbstractContextManager[Load]:
        """Start an open-loop window of at most `duration_s` seconds, with one rate per tenant. The
        window ends early if the context ends."""

    def offer_closed(
        self, in_flight: Sequence[int], duration_s: float
    ) -> AbstractContextManager[Load]:
        """Start a closed-loop window of at most `duration_s` seconds, with a fixed number of
        requests in flight for each tenant. The window ends early if the context ends."""

    def wait_until_idle(self, other_load: float) -> bool:
        """Wait until other processes use at most the share `other_load` of the server's cores and
        GPUs, and return True.

        All calls together wait at most PATIENCE_S seconds. When this time is over, a call returns
        False.
        """
