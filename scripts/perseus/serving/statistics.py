"""Triton's own statistics of a model."""

from __future__ import annotations

import json
from dataclasses import dataclass

from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer


@dataclass(frozen=True)
class ServerTimes:
    """Triton's cumulative times of a model: requests served and nanoseconds spent on each part."""

    requests: int
    queue_ns: int
    compute_input_ns: int
    compute_ns: int
    compute_output_ns: int


def server_times(server: RunningServer, model: str, timeout_s: float = 10.0) -> ServerTimes:
    """Of the version that answers, the highest one.

    Raises ServerError when the server does not answer with statistics of the model.
    """
    url = f"{server.access.scheme}://{server.http_address}/v2/models/{model}/stats"
    try:
        versions = json.loads(server.access.get(url, timeout_s))["model_stats"]
        stats = max(versions, key=lambda each: int(each["version"]))["inference_stats"]
        return ServerTimes(
            requests=int(stats["success"]["count"]),
            queue_ns=int(stats["queue"]["ns"]),
            compute_input_ns=int(stats["compute_input"]["ns"]),
            compute_ns=int(stats["compute_infer"]["ns"]),
            compute_output_ns=int(stats["compute_output"]["ns"]),
        )
    except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
        message = server.access.hide(f"no statistics of {model} from the server: {error}")
        raise ServerError(message) from None
