"""Tests that Perseus measures no responses from a cache: it refuses response caches, and sends
unseen requests to models that remember their responses. Also tests the times of a server's own
ensemble."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from e2e.test_server import backends
from live_systems import of_one_client
from measure_tasks import measure_task, tenant
from triton_elsewhere import triton_elsewhere

from perseus.measurement.clients import routes_to
from perseus.measurement.raw_results import RequestsWriter
from perseus.measurement.tenant_under_test import TenantUnderTest, tenants_on
from perseus.measurement.unbatched_limit import unseen_requests
from perseus.measurement.verify import VerificationError, refuse_cached, verify
from perseus.serving.failures import ServerError
from perseus.serving.launchers.remote import remote_server
from perseus.serving.running_server import RunningServer
from perseus.serving.triton_wheel import find_installation
from perseus.study.tasks.measure import ServedModel
from perseus.traffic.client import Client, sequential_ms

__all__ = ["backends"]

SLEEPER = """
import time
import numpy as np
import triton_python_backend_utils as pb_utils
from perseus_tensors import tensor

class TritonPythonModel:
    def initialize(self, args):
        self.remembers, self.known = "remembers" in args["model_name"], {}

    def execute(self, requests):
        return [self.answer(each) for each in requests]

    def answer(self, request):
        values = np.from_dlpack(pb_utils.get_input_tensor_by_name(request, "input"))
        asked = values.tobytes()
        if not (self.remembers and asked in self.known):
            time.sleep(0.02)
            self.known[asked] = values.sum(keepdims=True).reshape(1)
        return pb_utils.InferenceResponse([tensor("output", self.known[asked])])
"""
CONFIG = """
name: "{name}" backend: "sleeper"
input {{ name: "input" data_type: TYPE_FP32 dims: 16 }}
output {{ name: "output" data_type: TYPE_FP32 dims: 1 }}
instance_group {{ count: 2 kind: KIND_CPU }}
response_cache {{ enable: {cached} }}
"""
ENSEMBLE = """
name: "{name}" platform: "ensemble"
input {{ name: "input" data_type: TYPE_FP32 dims: 16 }}
output {{ name: "output" data_type: TYPE_FP32 dims: 1 }}
ensemble_scheduling {{ step {{ model_name: "{step}" model_version: -1
  input_map {{ key: "input" value: "input" }} output_map {{ key: "output" value: "output" }} }} }}
"""
CACHE_DIRECTORY = find_installation().binary.parents[1] / "caches"


def written(repository: Path) -> list[str]:
    """Write models that sleep for 20 ms, with and without a cache; return the names."""
    configs = {
        "cached": CONFIG.format(name="cached", cached="true"),
        "plain": CONFIG.format(name="plain", cached="false"),
        "remembers": CONFIG.format(name="remembers", cached="false"),
        "outer": ENSEMBLE.format(name="outer", step="cached"),
        "chain": ENSEMBLE.format(name="chain", step="plain"),
    }
    for name, config in configs.items():
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(config)
    return list(configs)


@pytest.fixture
def server(tmp_path: Path, backends: Path) -> Iterator[RunningServer]:
    (backends / "sleeper").mkdir()
    (backends / "sleeper" / "model.py").write_text(SLEEPER)
    (tmp_path / "elsewhere").mkdir()
    names = written(tmp_path / "repository")
    with (
        triton_elsewhere(
            tmp_path / "elsewhere",
            backends=backends,
            repository=tmp_path / "repository",
            arguments=[
                "--cache-config=local,size=10485760",
                f"--cache-directory={CACHE_DIRECTORY}",
                *(f"--load-model={name}" for name in names),
            ],
        ) as elsewhere,
        remote_server(elsewhere.remote(), None, tmp_path / "server.log", say=print) as running,
    ):
        yield running


def on(server: RunningServer, *models: str) -> list[TenantUnderTest]:
    served = [ServedModel(name=name, shape={}) for name in models]
    task = measure_task(*(tenant(f"our-{each.name}", served_model=each) for each in served))
    return tenants_on(server, task, {})


@pytest.mark.parametrize("model", ["cached", "outer"])
def test_a_model_with_a_response_cache_is_refused(server, model):
    with pytest.raises(ServerError) as refused:
        on(server, model)
    assert str(refused.value) == (
        f"{model!r} of the server at {server.grpc_address} cannot be measured: 'cached' has a"
        " response_cache, which answers instead of the model: set response_cache { enable: false }"
        " in the config.pbtxt of the model, and load the model again"
    )


def test_a_model_whose_statistics_count_hits_is_refused(server, monkeypatch):
    monkeypatch.setattr("perseus.serving.served_models.cached_models", lambda *_: [])
    tenants = on(server, "cached")
    verify(tenants)
    with pytest.raises(VerificationError) as refused:
        refuse_cached(server, tenants)
    assert re.sub(r"\d+ requests", "8 requests", str(refused.value)) == (
        "the server answered 8 requests of our-cached from its response cache, not with the model;"
        " nothing was measured. Set response_cache { enable: false } in the config.pbtxt of"
        " 'cached' and of the models that it calls"
    )


@pytest.mark.alone
def test_the_limit_is_of_the_model_even_if_it_remembers_its_answers(server):
    """The model has two instances that sleep for 20 ms, so it answers at most 100 requests/s."""
    plain, remembers = on(server, "plain", "remembers")
    verify([plain, remembers])
    refuse_cached(server, [plain, remembers])
    for each in (plain, remembers):
        limit_rps = unseen_requests(server, each, round_trip_ms=0.0).limit_rps
        assert limit_rps is not None and 51 < limit_rps <= 100
    with remembers.load_route(5.0) as route:
        assert sequential_ms(route, 8, 5.0).min() < 10, "it would pass for a fast model"


def test_an_ensemble_of_the_server_has_unknown_times(server, tmp_path):
    """Triton reports that no request of an ensemble waits in a queue, although 6 of 8 do."""
    asked = on(server, "chain", "plain")
    with RequestsWriter(tmp_path / "requests.parquet") as writer, routes_to(asked) as routes:
        for each in asked:
            with Client(each.name, routes[each.name], [0], steps=each.steps) as client:
                system = of_one_client(server, client, writer, longest_sla_s=1.0)
                with system.offer_closed([8], 1.5) as load:
                    seen = load.until(1.5)
            (queue_ms,), (parts,) = seen.queue_ms, system.ended[0].decompositions
            if each.model == "chain":
                assert len(queue_ms) == 0
                assert np.isnan([parts.queue_ms, parts.compute_output_ms, parts.client_ms]).all()
            else:
                assert len(queue_ms) > 0 and parts.queue_ms > 2 * parts.compute_ms
