"""Collect facts about a server for record.json, and measure the round-trip time to the server."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from tritonclient.utils import InferenceServerException

from perseus.serving.failures import ServerError
from perseus.serving.open_inference import server_metadata
from perseus.serving.running_server import STATISTICS, RunningServer

ROUND_TRIPS = 20
ANSWER_S = 5.0


def server_facts(server: RunningServer) -> dict[str, Any]:
    """Ask the server for facts about it, and return them for record.json.

    The keys are `server_name`, `triton_version`, `tells_statistics`, `image_id` and
    `round_trip_p50_ms`.

    The round-trip time is None if the server has no gRPC. Raises ServerError if a call fails.
    """
    about = server_metadata(server)
    return {
        "server_name": server.access.hide(about.name),
        "triton_version": server.access.hide(about.version),
        "tells_statistics": STATISTICS in server.extensions,
        "image_id": server.image_id,
        "round_trip_p50_ms": None if server.protocol == "http" else _round_trip_p50_ms(server),
    }


def _round_trip_p50_ms(server: RunningServer) -> float:
    headers = server.access.values()
    trips_ms: list[float] = []
    try:
        with server.access.grpc_client(server.grpc_address) as client:
            for _ in range(ROUND_TRIPS):
                start_ns = time.monotonic_ns()
                client.is_server_live(headers=headers, client_timeout=ANSWER_S)
                trips_ms.append((time.monotonic_ns() - start_ns) / 1e6)
    except InferenceServerException as error:
        message = server.access.hide(f"the server does not answer a health request: {error}")
        raise ServerError(message) from None
    return float(np.median(trips_ms))
