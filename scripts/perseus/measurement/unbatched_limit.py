"""Compute the highest possible throughput of a model without batching, and warn if a measured
throughput is higher.

If the measured throughput exceeds the computed limit, a cache may have answered some of the
requests, or the host may have become faster. The cache can be in the server, in the model, or in
front of the server. The requests that determine the limit have inputs that the server has not seen,
so no cache can answer these requests.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import numpy as np

from perseus.measurement.tenant_under_test import TenantUnderTest
from perseus.serving.failures import ServerError
from perseus.serving.model_control import Control
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import tenant_times
from perseus.traffic.client import ClientError, sequential_ms
from perseus.traffic.requests import MS

UNSEEN_LIMIT_S: Final = 2.0
DOUBTFUL: Final = 1.2
"""Perseus warns if a measured throughput exceeds DOUBTFUL times the limit."""

MAX_HOST_GAIN: Final = 1.8
"""Largest ratio of throughput to limit that a faster host can explain. A larger ratio suggests a
cache. MAX_HOST_GAIN is the product of 1.2 and 1.5. A busy server is up to 1.2 times as fast as an
idle server, whose processor sleeps. Within a minute, a host can become up to 1.5 times as fast."""

MIN_REQUESTS: Final = 20
"""Perseus ignores windows with fewer than MIN_REQUESTS counted requests. In such a window, the
first and the last request distort the throughput."""


@dataclass(frozen=True)
class UnseenRequests:
    """The result of single requests with inputs that the server had not seen.

    `p50_ms` is the median latency. `limit_rps` is the highest rate in requests/s that the instances
    of the model can answer without batching. Unknown values are None.
    """

    p50_ms: float | None
    limit_rps: float | None


def unseen_requests(
    server: RunningServer, tenant: TenantUnderTest, round_trip_ms: float | None
) -> UnseenRequests:
    """Send requests with unseen inputs one after another, and compute the limit of the model.

    The limit is the number of the model's instances divided by the service time. The service time
    is the smaller of two values: the shortest latency minus `round_trip_ms`, and the mean time per
    request in the server's statistics. `round_trip_ms` is the time of a health request, or None for
    a server that has only HTTP.

    The limit is unknown if the service time or the number of instances is unknown (`_instances`),
    or if the server does not answer requests with unseen inputs. A server may support no statistics
    (`tenant_times`). Raises ServerError if any other server sends no statistics.
    """
    unseen = tenant.unseen_batches()
    if not unseen:
        return UnseenRequests(None, None)
    before = tenant_times(server, tenant.model, ())
    try:
        with tenant.route_of(unseen) as route:
            latencies_ms = sequential_ms(route, len(unseen), UNSEEN_LIMIT_S)
    except ClientError:  # a model may refuse values that differ from the examples
        return UnseenRequests(None, None)
    after = tenant_times(server, tenant.model, ())
    served = after.since(before) if after and before else None
    service_ms = np.inf if round_trip_ms is None else float(latencies_ms.min()) - round_trip_ms
    if served is not None and served.requests > 0:
        service_ms = min(service_ms, served.busy_ns / served.requests / MS)
    count = _instances(server, tenant.model)
    is_known = count is not None and 0 < service_ms < np.inf
    limit_rps = 1000 * count / service_ms if count is not None and is_known else None
    return UnseenRequests(float(np.median(latencies_ms)), limit_rps)


def _instances(server: RunningServer, model: str) -> int | None:
    """Return the number of instances of a model; None if the number is unknown, if the server forms
    batches of several requests, or if the model is an ensemble."""
    try:
        with Control(server) as control:
            config = control.config(model)
    except ServerError:  # servers other than Triton have no model configuration
        return None
    if config.HasField("dynamic_batching") or config.HasField("ensemble_scheduling"):
        return None
    return sum(group.count * max(1, len(group.gpus)) for group in config.instance_group) or None


def warnings(record: Mapping[str, Any], windows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one warning for each tenant whose throughput exceeds DOUBTFUL times the limit of its
    model.

    `record` contains the keys that the experiment adds to record.json, and `windows` contains rows
    of windows.parquet.
    """
    for tenant, limit_rps in record.get("unbatched_limit_rps", {}).items():
        fastest_rps = _fastest_rps(tenant, windows)
        if limit_rps is None or fastest_rps <= DOUBTFUL * limit_rps:
            continue
        unseen_ms = record.get("unseen_p50_ms", {}).get(tenant) or 0.0
        repeats_are_faster = unseen_ms > DOUBTFUL * record["unloaded_p50_ms"].get(tenant, np.inf)
        by_host = not repeats_are_faster and fastest_rps <= MAX_HOST_GAIN * limit_rps
        yield (
            f"{tenant} answered {fastest_rps:.0f} requests/s, but according to the latency of"
            f" single requests, its model instances can answer only {limit_rps:.0f} requests/s: "
            + (
                "the host probably became faster after the single requests"
                if by_host
                else "check whether a cache answers instead of the model"
            )
        )


def _fastest_rps(tenant: str, windows: Sequence[Mapping[str, Any]]) -> float:
    """Return the throughput of the fastest phase, in requests/s. The throughput of a phase is the
    median over its windows.

    Some responses to counted requests arrive in the grace time at the end of a window. Therefore
    the function divides the number of responses by a time that includes the grace time. The result
    is a lower bound of the true throughput.
    """
    rates_rps = defaultdict[str, list[float]](list)
    for each in windows:
        if each["tenant"] == tenant and each["requests"] >= MIN_REQUESTS:
            counted_s = each["elapsed_s"] - each["settle_s"]
            answered_rps = each["completed_ratio"] * each["requests"] / counted_s
            rates_rps[each["phase"]].append(answered_rps)
    return max(map(median, rates_rps.values()), default=0.0)
