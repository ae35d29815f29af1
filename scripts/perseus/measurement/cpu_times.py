"""Compute the CPU time per request of a window, on the client and on the server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perseus.traffic.client import Result


@dataclass(frozen=True)
class CpuTimes:
    """The CPU time per answered request, in milliseconds.

    `client_cpu_ms` is the CPU time of a tenant's client divided by the number of answered requests
    of the tenant. `server_cpu_ms` is the CPU time of the server divided by the number of answered
    requests of all tenants. A value is None if the CPU time is unknown, or if no request was
    answered.
    """

    client_cpu_ms: float | None
    server_cpu_ms: float | None


def cpu_times(server_cpu_s: float, results: Sequence[Result]) -> tuple[CpuTimes, ...]:
    """Return the CPU times per answered request, one entry per tenant.

    `server_cpu_s` is the CPU time of the server from the start of the window until the server is
    idle again. The server is idle at the start, so all of this time belongs to the requests of the
    window.
    """
    answered = [int(np.sum(result.requests.answered)) for result in results]
    of_server = _each_ms(server_cpu_s, sum(answered))
    return tuple(
        CpuTimes(_each_ms(result.cpu_s, count), of_server)
        for result, count in zip(results, answered, strict=True)
    )


def _each_ms(cpu_s: float, requests: int) -> float | None:
    return 1000 * cpu_s / requests if requests and not math.isnan(cpu_s) else None
