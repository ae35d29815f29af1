"""Tests of servers with rare but valid settings: limited queues, and model namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from e2e.test_server import backends
from measure_tasks import measure_task, tenant
from triton_elsewhere import triton_elsewhere

from perseus.measurement.closed_loop import ON_IDLE_HOST, closed_loop
from perseus.measurement.first_inferences import first_inferences
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.open_loop import open_loop
from perseus.measurement.raw_results import RequestsWriter
from perseus.measurement.tenant_under_test import tenants_on
from perseus.measurement.unbatched_limit import unseen_requests
from perseus.measurement.verify import refuse_cached, verify
from perseus.peak.verdict import Verdict
from perseus.serving.failures import ServerError
from perseus.serving.launchers.remote import remote_server
from perseus.serving.running_server import RunningServer
from perseus.study.sla import Sla
from perseus.study.tasks.measure import MeasureTask, ServedModel
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.client import Client
from perseus.traffic.requests import Status

__all__ = ["backends"]

SLEEPER = """
import time
import numpy as np
import triton_python_backend_utils as pb_utils
from perseus_tensors import tensor

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(each) for each in requests]

    def answer(self, request):
        time.sleep(0.01)
        values = np.from_dlpack(pb_utils.get_input_tensor_by_name(request, "input"))
        return pb_utils.InferenceResponse([tensor("output", values.sum(axis=1, keepdims=True))])
"""
CONFIG = """
name: "{name}" backend: "sleeper" max_batch_size: 1
input {{ name: "input" data_type: TYPE_FP32 dims: 16 }}
output {{ name: "output" data_type: TYPE_FP32 dims: 1 }}
instance_group {{ count: 1 kind: KIND_CPU }}
{more}
"""
SHORT_QUEUE = "dynamic_batching { default_queue_policy { max_queue_size: 2 } }"


def write(repository: Path, name: str, more: str = "") -> None:
    """Write a model that sleeps for 10 ms."""
    (repository / name / "1").mkdir(parents=True)
    (repository / name / "config.pbtxt").write_text(CONFIG.format(name=name, more=more))


@contextmanager
def served(
    folder: Path, backends: Path, repository: Path, *arguments: str
) -> Iterator[RunningServer]:
    (backends / "sleeper").mkdir()
    (backends / "sleeper" / "model.py").write_text(SLEEPER)
    (folder / "elsewhere").mkdir()
    with (
        triton_elsewhere(
            folder / "elsewhere",
            backends=backends,
            repository=repository,
            control="none",
            arguments=arguments,
        ) as elsewhere,
        remote_server(elsewhere.remote(), None, folder / "server.log", say=print) as running,
    ):
        yield running


def asked(*models: str) -> MeasureTask:
    tenants = (
        tenant(name, served_model=ServedModel(name=name, shape={}), sla=Sla(latency_ms=50.0))
        for name in models
    )
    return measure_task(*tenants)


def test_a_server_with_model_namespaces_is_asked_for_each_model(tmp_path, backends):
    for name in ("one", "both"):
        write(tmp_path / "first", name)
    for name in ("two", "both"):
        write(tmp_path / "second", name)
    more = ["--model-namespacing=true", f"--model-repository={tmp_path / 'second'}"]
    with served(tmp_path, backends, tmp_path / "first", *more) as server:
        tenants = tenants_on(server, asked("one", "two"), {})
        assert verify(tenants) == {"one": 0, "two": 0}
        refuse_cached(server, tenants)
        assert set(first_inferences(tenants)) == {"one", "two"}
        for each in tenants:
            limit_rps = unseen_requests(server, each, round_trip_ms=0.0).limit_rps
            assert limit_rps is not None and 20 < limit_rps < 101
            # without gRPC, only the server's statistics state the service time
            only_http = unseen_requests(server, each, round_trip_ms=None).limit_rps
            assert only_http is not None and 20 < only_http < 101
        with pytest.raises(ServerError, match="both"):
            tenants_on(server, asked("both"), {})


@pytest.mark.alone
def test_a_queue_that_refuses_is_not_stormed_and_its_refusals_are_late(tmp_path, backends):
    """If the queue of a model has a limit, Triton sometimes leaves the model idle for 0.5 s."""
    write(tmp_path / "models", "short", SHORT_QUEUE)
    with served(tmp_path, backends, tmp_path / "models") as server:
        task = asked("short")
        (under_test,) = tenants_on(server, task, {})
        verify([under_test])
        with (
            under_test.load_route(5.0) as route,
            Client("short", route, [0]) as client,
            RequestsWriter(tmp_path / "requests.parquet") as writer,
        ):
            system = LiveSystem(
                server,
                [client],
                Arrivals("poisson", 1.0),
                [np.random.default_rng(0)],
                writer,
                server_cores=[],
                client_cores=[0],
                longest_sla_s=0.05,
            )
            closed, _ = closed_loop(task, system, "warm_up", 4)
            flooded = open_loop(task, system, "bracket", [300.0], 3.0, ON_IDLE_HOST)
    (asked_by_four,), (beyond,) = closed.seen.requests, flooded.seen.requests
    seconds = closed.elapsed_s
    assert 0 < asked_by_four.count(Status.REFUSED) < 4 * (6 + 4 * seconds)
    assert asked_by_four.count(Status.OK) > 0 and beyond.count(Status.OK) > 0
    (late,) = flooded.tenants
    assert late.verdict is Verdict.FAIL and late.refused > 0
    assert late.exceedance >= late.refused / late.requests
