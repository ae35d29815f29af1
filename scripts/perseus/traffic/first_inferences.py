"""The first requests to a fresh server: every batch size that it can form, once (M4).

A runtime may plan, compile or allocate when it first meets a size; no window shall pay for that.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.traffic.connect import connect
from perseus.traffic.route import RouteError, route_to
from perseus.traffic.transport import RequestFailedError

MOST_SIZES = 32
ANSWER_S = 120.0


def first_inferences(
    server: RunningServer, cell: Mapping[str, Any], references: Mapping[str, Path]
) -> dict[str, float]:
    """Milliseconds of each tenant's first request, to a server that has served none before.

    Raises ServerError when one is not answered.
    """
    return {
        tenant["name"]: _first_ms(server, tenant, references[tenant["name"]], cell["client"])
        for tenant in cell["tenants"]
    }


def _first_ms(
    server: RunningServer, tenant: Mapping[str, Any], reference: Path, client: Mapping[str, Any]
) -> float:
    name = tenant["name"]
    with np.load(reference) as arrays:
        images = arrays["input"]
    sizes = batch_sizes(
        tenant["request_batch_size"], tenant["max_batch_size"], tenant["dynamic_batching"]
    )
    batches = [images[np.arange(size) % len(images)] for size in sizes]
    try:
        with (
            route_to(server, name, batches, client, ANSWER_S) as route,
            connect(route) as transport,
        ):
            start_ns = time.monotonic_ns()
            transport.infer(0, ANSWER_S)
            first_ms = (time.monotonic_ns() - start_ns) / 1e6
            for i in range(1, len(batches)):
                transport.infer(i, ANSWER_S)
    except (RequestFailedError, RouteError) as error:
        raise ServerError(f"{name} does not answer its first requests: {error}") from error
    return first_ms


def batch_sizes(request: int, largest: int, batching: bool) -> list[int]:
    """The batches, in images, that requests of `request` images can end up in, smallest first.

    Of more than MOST_SIZES an even selection, with both ends.
    """
    sizes = range(request, largest + 1, request) if batching else [request]
    picked = np.linspace(0, len(sizes) - 1, min(len(sizes), MOST_SIZES)).round().astype(int)
    return [sizes[i] for i in picked]
