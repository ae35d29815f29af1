"""Define the input for simulations of a load line: the load line itself, the SLAs, the arrival
process, and a virtual queue in place of the server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from perseus.peak.load_line import LoadLine
from perseus.peak.virtual_queue import LongRun, VirtualQueue
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals


@dataclass(frozen=True)
class LineModel:
    """The input for simulations of the load line `line`. `queue` simulates the server."""

    line: LoadLine
    slas: tuple[Sla, ...]
    arrivals: Arrivals
    queue: VirtualQueue

    @cached_property
    def long_run(self) -> Callable[[tuple[float, ...], int, int], LongRun]:
        """Return a function that simulates many requests in the virtual queue.

        The arguments of the returned function are each tenant's share of the requests, the number
        of requests, and the index of the simulation. The index selects the random numbers. The
        function caches its results, because the exceedance curves of all tenants need the same
        simulations.
        """
        queue, arrivals = self.queue, self.arrivals

        @lru_cache(maxsize=8)  # one exceedance curve needs eight runs
        def long_run(shares: tuple[float, ...], requests: int, run: int) -> LongRun:
            return LongRun.of(queue, shares, arrivals, requests, run)

        return long_run
