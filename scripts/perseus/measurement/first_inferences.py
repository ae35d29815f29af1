"""Send the first requests to a fresh server, with every batch size that the server can form.

At the first batch of a new size, a runtime may plan the execution, compile code, or allocate
memory. The first requests trigger this work, so that it does not slow the measured windows down
(docs/explanation/load.md).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from perseus.measurement.tenant_under_test import ANSWER_S, TenantUnderTest
from perseus.serving.failures import ServerError
from perseus.traffic.route import RouteError
from perseus.traffic.transport import RequestFailedError

MAX_SIZES = 32


def first_inferences(tenants: Sequence[TenantUnderTest]) -> dict[str, float]:
    """Return the latency of each tenant's first request, in milliseconds.

    If the server already ran before the measurement, other users may have sent requests to the
    model. The returned latency is then not the latency of the model's first inference.

    Raises ServerError if the server does not answer a request.
    """
    return {tenant.name: _first_ms(tenant) for tenant in tenants}


def _first_ms(tenant: TenantUnderTest) -> float:
    sizes = batch_sizes(
        tenant.settings.request_batch_size, tenant.max_batch_size, tenant.dynamic_batching
    )
    parts = [[i % tenant.count for i in range(size)] for size in sizes]
    try:
        with tenant.transport(parts) as transport:
            start_ns = time.monotonic_ns()
            transport.infer(0, ANSWER_S)
            first_ms = (time.monotonic_ns() - start_ns) / 1e6
            for i in range(1, len(sizes)):
                transport.infer(i, ANSWER_S)
    except (RequestFailedError, RouteError) as error:
        raise ServerError(
            f"the server does not answer the first requests to {tenant.name}: {error}"
        ) from error
    return first_ms


def batch_sizes(request: int, largest: int, batching: bool) -> list[int]:
    """Return the sizes of the batches that the server can form, as ascending numbers of images.

    Each request contains `request` images. If there are more than MAX_SIZES batch sizes, the
    function returns MAX_SIZES evenly spaced sizes, including the smallest and the largest size.
    """
    sizes = range(request, largest + 1, request) if batching else [request]
    picked = np.linspace(0, len(sizes) - 1, min(len(sizes), MAX_SIZES)).round().astype(int)
    return [sizes[i] for i in picked]
