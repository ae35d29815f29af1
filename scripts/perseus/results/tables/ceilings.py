"""Make the table `ceilings`: the highest rates at which the client can send requests on schedule
(client ceilings)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.results.client_ceiling import Ceiling, RequestShape
from perseus.results.client_load import problem_of
from perseus.results.records import Row
from perseus.results.schema import Schema, column, holds
from perseus.results.study_results import StudyResults

DESCRIPTION = (
    "One row per server and request shape (size of the inputs, images per request). The client"
    " ceiling is the highest rate at which the client can send requests on schedule. If a measured"
    " peak is near the client ceiling, the client may have limited the peak."
)
SCHEMA = Schema(
    [
        column("server", TEXT, "",
            "name of the server in the configuration. During the measurement, a null model (a model"
            " that does no work) runs on the cores of this server, and the client runs on its own"
            " cores."),
        column("models", TEXT, "", "names of the models whose requests have this shape"),
        column("inputs", TEXT, "", "shape of the inputs for one image, such as 3x224x224"),
        column("request_batch_size", WHOLE, "images", "number of images per request", least=1),
        column("request_bytes", WHOLE, "bytes", "size of the inputs in one request"),
        column("protocol", TEXT, "",
            "protocol of the requests: grpc or http", choices=("grpc", "http")),
        column("shared_memory", FLAG, "",
            "true if the client passes the inputs to the server in system shared memory"),
        column("client_cores", WHOLE, "cores", "number of cores on which the client runs"),
        column("processes", WHOLE, "", "number of client processes"),
        column("ceiling_rps", REAL, "requests/s",
            "client ceiling: the highest rate that the client sent on schedule in a valid window."
            " In this window, the client sends requests to one tenant, with the arrival process of"
            " the study (docs/explanation/load.md)."),
        column("problem", TEXT, "",
            "reason why the measured client ceiling is too low. Empty if the ceiling is reliable."),
        column("first_invalid_rps", REAL, "requests/s",
            "lowest rate above the client ceiling at which a window was invalid"),
        column("send_lag_p99_ms", REAL, "ms",
            "99th percentile of the send lag at the client ceiling"),
        column("longest_lag_ms", REAL, "ms",
            "largest allowed 99th percentile of the send lag: 2 % of the latency limit, but at"
            " least 1 ms. The latency limit is the shortest limit in the SLAs of this row's models,"
            " rounded down to 50, 100, 200, 500, 1000, ... ms. If other processes disturbed the"
            " first measurement, Perseus measured again and allowed 20 % of the latency limit, but"
            " at least 1 ms.",
               null=False),
        column("client_cpu", REAL, "cores",
            "CPU load of the client at the client ceiling: the larger of (1) the CPU time per"
            " second of the busiest client process and (2) the quotient (CPU time per second of all"
            " client processes / number of client cores)"),
        column("closed_loop_rps", REAL, "requests/s",
            "highest throughput that the client reached in closed loops with different"
            " concurrencies", null=False),
        column("closed_loop_concurrency", WHOLE, "requests",
            "number of requests in flight (concurrency) in the closed loop with the highest"
            " throughput"),
        column("cpu_us_per_request", REAL, "us",
            "CPU time of the client per request in the closed loop with the highest throughput",
               null=False),
    ],
    key=("server", "models", "request_batch_size"),
    holds=[
        holds(
            "ceiling_rps < first_invalid_rps",
            lambda ceiling_rps, first_invalid_rps: ceiling_rps < first_invalid_rps,
        )
    ],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for ceiling in results.ceilings:
        for shape in ceiling.shapes:
            yield _row(ceiling, shape, problem_of(ceiling, shape, results.ceiling_problems))


def _row(ceiling: Ceiling, shape: RequestShape, problem: str) -> Row:
    found = shape.highest_valid
    ceiling_rps = found.rate_rps if found else np.nan
    tried = [each.rate_rps for each in shape.open]
    at_most = max(shape.closed, key=lambda each: each.rate_rps)
    return {
        "server": ceiling.server,
        "models": " + ".join(shape.models),
        "inputs": shape.inputs,
        "request_batch_size": shape.request_batch_size,
        "request_bytes": shape.request_bytes,
        "protocol": ceiling.client.protocol,
        "shared_memory": ceiling.client.shared_memory,
        "client_cores": len(ceiling.host["client_cores"]),
        "processes": ceiling.processes,
        "ceiling_rps": ceiling_rps,
        "problem": problem,
        "first_invalid_rps": min((r for r in tried if not r <= ceiling_rps), default=np.nan),
        "send_lag_p99_ms": found.send_lag_p99_ms if found else np.nan,
        "longest_lag_ms": shape.longest_lag_ms,
        "client_cpu": found.client_cpu if found else np.nan,
        "closed_loop_rps": at_most.rate_rps,
        "closed_loop_concurrency": at_most.concurrency,
        "cpu_us_per_request": at_most.cpu_us_per_request,
    }
