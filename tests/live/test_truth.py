"""The search on a real server with a known limit: its model sleeps for a constant time."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from e2e.test_server import write_repository

from perseus.host.cores import TooFewCoresError, split_cores
from perseus.measurement.ceiling import closed_loop
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.raw_results import RequestsWriter
from perseus.peak import stats
from perseus.peak.lindley import departures_s
from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import Outcome
from perseus.peak.search import find_peak
from perseus.serving.launchers.embedded import embedded_triton
from perseus.study.presets import PRESETS, Effort
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.client import Client, sequential_ms
from perseus.traffic.route import Route, inline

pytestmark = pytest.mark.alone

# The test only compares the certified rate with the truth, so short windows are enough.
SETTINGS = replace(PRESETS["quick"].settings, certify=Effort(requests=500, max_s=4, looks=1))
SERVICE_MS = 6.0
SLA = Sla(latency_ms=40.0)
BACKEND = """
import time
import numpy as np
import triton_python_backend_utils as pb_utils
from perseus_tensors import tensor

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for _ in requests:
            end_s = time.monotonic() + SERVICE_S
            while (left_s := end_s - time.monotonic()) > 0:
                time.sleep(left_s)
            answer = tensor("output", np.zeros((1, 3, 8, 8), np.float32))
            responses.append(pb_utils.InferenceResponse([answer]))
        return responses
"""


def true_limit_rps(service_ms: float, overhead_ms: float) -> float:
    """Return the Poisson rate at which the p95 of M/D/1 plus a constant overhead reaches the SLA.

    A bisection simulates a million requests with the same random numbers at each rate.
    """
    gaps = np.random.default_rng(0).exponential(1, 1_000_000)
    work_s = np.full(len(gaps), service_ms / 1000)
    low, high = 0.3 / work_s[0], 1 / work_s[0]
    while high - low > 0.001 * high:
        middle = (low + high) / 2
        arrival_s = np.cumsum(gaps / middle)
        latency_ms = 1000 * (departures_s(arrival_s, work_s) - arrival_s) + overhead_ms
        within = stats.percentile(latency_ms, SLA.percentile) <= SLA.latency_ms
        low, high = (middle, high) if within else (low, middle)
    return (low + high) / 2


def sleep_ms(cores: Sequence[int]) -> float:
    """Return how long the server's sleep takes on this host now, including noise of the host."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    start_s = time.monotonic()
    for _ in range(200):
        time.sleep(SERVICE_MS / 1000)
    os.sched_setaffinity(0, mine)
    return 1000 * (time.monotonic() - start_s) / 200


def test_the_limit_of_a_sleeping_server_is_found_within_ten_percent(tmp_path: Path) -> None:
    try:
        server_cores, client_cores = split_cores(1)
    except TooFewCoresError as error:
        pytest.skip(str(error))
    backend = tmp_path / "backends" / "sleep" / "model.py"
    backend.parent.mkdir(parents=True)
    backend.write_text(BACKEND.replace("SERVICE_S", str(SERVICE_MS / 1000)))
    repository = write_repository(tmp_path, backend="sleep")
    batch = np.zeros((1, 3, 8, 8), np.float32)
    backends, log = tmp_path / "backends", tmp_path / "server.log"
    with (
        embedded_triton(repository, log, server_cores, backends=backends) as server,
        RequestsWriter(tmp_path / "requests.parquet") as writer,
    ):
        route = Route("grpc", server.grpc_address, "tiny", inline([batch]), timeout_s=10.0)
        unloaded_ms = sequential_ms(route, 100, 2.0)
        with Client("tiny", route, client_cores) as client:
            # including the time of Triton's stub
            service_ms = 1000 / closed_loop(client, 4).rate_rps
            slept_ms = sleep_ms(server_cores)
            system = LiveSystem(
                server,
                [client],
                Arrivals("poisson", 1.0),
                [np.random.default_rng(1)],
                writer,
                server_cores=server_cores,
                client_cores=client_cores,
                longest_sla_s=SLA.latency_ms / 1000,
            )
            peak = find_peak(
                system,
                LoadLine((0.0,), (1.0,)),
                [SLA],
                SETTINGS,
                start=90.0,
                unloaded_ms=[unloaded_ms],
                names=["tiny"],
                rng=np.random.default_rng(2),
            )
    truth_rps = true_limit_rps(service_ms, float(np.median(unloaded_ms)) - service_ms)
    found = f"{peak.estimate:.1f}/s ({peak.outcome}), true {truth_rps:.1f}/s, {service_ms:.2f} ms"
    print(found)
    assert SERVICE_MS < service_ms < 1.2 * slept_ms
    if peak.outcome in (Outcome.CLIENT_LIMITED, Outcome.DISTURBED):
        pytest.skip(f"this host is too busy to measure on: {peak.reason}")
    assert peak.outcome in (Outcome.OK, Outcome.UNCERTIFIED), found
    assert peak.estimate == pytest.approx(truth_rps, rel=0.1), found
    assert not peak.certified > 1.02 * truth_rps, found
    low, high = np.quantile(peak.posterior, [0.025, 0.975])
    assert low / 1.05 <= truth_rps <= high * 1.05, found
