"""Divide the mean latency of a window into the times in the queue, the model and the client."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perseus.serving.statistics import ServerTimes
from perseus.traffic.requests import MS, Requests


@dataclass(frozen=True)
class Decomposition:
    """The parts of the mean latency of a tenant's answered requests in one window, in milliseconds.

    All parts except `client_ms` come from Triton's counters. `client_ms` is the mean latency minus
    all other parts: the time in the network and in the client.
    """

    queue_ms: float
    compute_input_ms: float
    compute_ms: float
    compute_output_ms: float
    client_ms: float


def decompose(
    before: ServerTimes | None, after: ServerTimes | None, requests: Requests
) -> Decomposition:
    """Return the parts of the mean latency of a window. Unknown parts are NaN.

    `before` and `after` are the readings of Triton's counters at the start and at the end of the
    window. A reading is None if the server offers no statistics, or if the model is an ensemble
    that the server already had.

    The parts are unknown in each of these cases:

    - A reading is None.
    - The server answered no request.
    - The server executed a request that timed out, or that the client cancelled at the end of the
      window.
    - The server loaded the model again between the readings.
    - The sum of the times from the counters exceeds the mean latency.
    """
    unknown = Decomposition(*[float("nan")] * 5)
    if before is None or after is None:
        return unknown
    served = after.since(before)
    answers = int(np.sum(requests.answered))
    if served is None or answers == 0 or served.requests != answers:
        return unknown
    queue, given, compute, taken = (
        total_ns / answers / MS
        for total_ns in (
            served.queue_ns,
            served.compute_input_ns,
            served.compute_ns,
            served.compute_output_ns,
        )
    )
    mean_ms = float(np.mean((requests.done_ns - requests.intended_ns)[requests.answered])) / MS
    client = mean_ms - queue - given - compute - taken
    if client < 0:
        return unknown
    return Decomposition(
        queue_ms=queue,
        compute_input_ms=given,
        compute_ms=compute,
        compute_output_ms=taken,
        client_ms=client,
    )
