"""Read how long the requests to a model took in each phase, from Triton's statistics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

from perseus.serving.failures import ServerError
from perseus.serving.running_server import STATISTICS, RunningServer


@dataclass(frozen=True)
class ServerTimes:
    """Triton's counters of a model. They begin at 0 when the server loads the model.

    `requests` is the number of successful requests. `cache_hits` is the number of responses from
    the response cache. Each other counter is the total time of all requests in one phase, in
    nanoseconds.
    """

    requests: int
    queue_ns: int
    compute_input_ns: int
    compute_ns: int
    compute_output_ns: int
    cache_hits: int = 0

    @property
    def busy_ns(self) -> int:
        """Return the total time for which requests occupied instances of the model, in ns."""
        return self.compute_input_ns + self.compute_ns + self.compute_output_ns

    def since(self, before: ServerTimes) -> ServerTimes | None:
        """Return the increase of each counter since an earlier reading; None if a counter
        decreased.

        A counter decreases if the server loads the model again between the readings, because the
        counters of a newly loaded model begin at 0.
        """
        added = [new - old for new, old in zip(astuple(self), astuple(before), strict=True)]
        return ServerTimes(*added) if min(added) >= 0 else None


def server_times(server: RunningServer, model: str, timeout_s: float = 10.0) -> ServerTimes:
    """Return the counters of a model's highest version, which responds to the requests of Perseus.

    Raises ServerError if the server sends no statistics of the model.
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
            cache_hits=int(stats["cache_hit"]["count"]) if "cache_hit" in stats else 0,
        )
    except (OSError, ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
        message = server.access.hide(f"the server sent no statistics of {model}: {error}")
        raise ServerError(message) from None


def tenant_times(
    server: RunningServer, model: str, steps: Sequence[str], timeout_s: float = 10.0
) -> ServerTimes | None:
    """Return the counters of a tenant's model; None if the server reports no statistics.

    If the model is an ensemble, `steps` contains the names of its models. Triton's statistics of
    the ensemble contain the compute times of these models, but not their queue times. The output
    time of each model counts twice: as output time, and as the wait for the next model. Therefore
    the function reads two values from the statistics of the models themselves: the queue time of
    each model, and the output time of the last model.

    Raises ServerError if the server sends no statistics of one of the models.
    """
    if STATISTICS not in server.extensions:
        return None
    whole = server_times(server, model, timeout_s)
    each = [server_times(server, step, timeout_s) for step in steps]
    if not each:
        return whole
    return replace(
        whole,
        queue_ns=sum(step.queue_ns for step in each),
        compute_output_ns=each[-1].compute_output_ns,
        cache_hits=whole.cache_hits + sum(step.cache_hits for step in each),
    )
