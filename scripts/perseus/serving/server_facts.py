"""What a server says of itself, and how far away it is."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from tritonclient.utils import InferenceServerException

from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer

ROUND_TRIPS = 20
ANSWER_S = 5.0


def server_facts(server: RunningServer) -> dict[str, Any]:
    """Its part of the record: `triton_version`, `image_id` and `round_trip_p50_ms`.

    Raises ServerError.
    """
    headers = server.access.values()
    trips_ms: list[float] = []
    try:
        with server.access.grpc_client(server.grpc_address) as client:
            version = client.get_server_metadata(headers=headers, client_timeout=ANSWER_S).version
            for _ in range(ROUND_TRIPS):
                start_ns = time.monotonic_ns()
                client.is_server_live(headers=headers, client_timeout=ANSWER_S)
                trips_ms.append((time.monotonic_ns() - start_ns) / 1e6)
    except InferenceServerException as error:
        message = server.access.hide(f"the server does not answer a health request: {error}")
        raise ServerError(message) from None
    return {
        "triton_version": server.access.hide(version),
        "image_id": server.image_id,
        "round_trip_p50_ms": float(np.median(trips_ms)),
    }
