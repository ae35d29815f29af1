"""The launcher `remote` with a real tritonserver that runs independently of Perseus."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
from e2e.test_server import SCRIPTS, backends, infer, signal_like, write_repository
from measure_tasks import client, measure_task, tenant
from triton_elsewhere import Elsewhere, triton_elsewhere

from perseus.measurement.first_inferences import first_inferences
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.raw_results import RequestsWriter
from perseus.measurement.tenant_under_test import tenants_on
from perseus.measurement.verify import VerificationError, verify
from perseus.serving.failures import ServerError
from perseus.serving.launchers.remote import remote_server
from perseus.serving.model_control import Control, PushedModel, read_models
from perseus.serving.running_server import RunningServer
from perseus.serving.server_facts import server_facts
from perseus.study.tasks.measure import MeasureTask, ServedModel
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.client import Client, sequential_ms
from perseus.traffic.route import route_to

__all__ = ["backends"]

BATCH = signal_like()


@pytest.fixture
def elsewhere(tmp_path: Path, backends: Path) -> Iterator[Elsewhere]:
    (tmp_path / "elsewhere").mkdir()
    with triton_elsewhere(tmp_path / "elsewhere", backends=backends) as server:
        yield server


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return with_model(write_repository(tmp_path))


def with_model(repository: Path) -> Path:
    """Add a model file: the backend needs no network, but Perseus expects a file in each of its
    models."""
    (repository / "tiny" / "1" / "model.onnx").write_bytes(bytes(1000))
    return repository


def loaded(elsewhere: Elsewhere) -> list[str]:
    with triton_grpc.InferenceServerClient(f"{elsewhere.host}:{elsewhere.grpc_port}") as client:
        return [m.name for m in client.get_inference_statistics(client_timeout=5).model_stats]


@contextmanager
def served(elsewhere: Elsewhere, repository: Path, folder: Path, messages: list[str] | None = None):
    say = (messages if messages is not None else []).append
    with remote_server(elsewhere.remote(), repository, folder / "server.log", say=say) as server:
        yield server


@pytest.mark.alone
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_models_are_pushed_answer_and_are_unloaded(elsewhere, repository, tmp_path, protocol):
    with served(elsewhere, repository, tmp_path) as server:
        assert loaded(elsewhere) == ["tiny"] and server.pid is None
        with route_to(server, client(protocol), "tiny", [BATCH], 5.0) as route:
            assert len(sequential_ms(route, 5, 5.0)) == 5
        with triton_grpc.InferenceServerClient(server.grpc_address) as other:
            np.testing.assert_array_equal(infer(other, BATCH), np.maximum(BATCH, 0))
        facts = server_facts(server)
        assert facts["triton_version"] == "2.51.0" and 0 < facts["round_trip_p50_ms"] < 20
    assert loaded(elsewhere) == []
    assert "triton 2.51.0" in (tmp_path / "server.log").read_text()


def test_models_are_unloaded_when_the_body_raises(elsewhere, repository, tmp_path):
    with pytest.raises(ZeroDivisionError), served(elsewhere, repository, tmp_path):
        raise ZeroDivisionError
    assert loaded(elsewhere) == []


@pytest.mark.parametrize("control", ["none", "poll"])
def test_a_server_that_is_not_in_explicit_control_is_explained(
    tmp_path, backends, repository, control
):
    (tmp_path / "elsewhere").mkdir()
    with (
        triton_elsewhere(tmp_path / "elsewhere", backends=backends, control=control) as elsewhere,
        pytest.raises(ServerError, match="--model-control-mode=explicit"),
        served(elsewhere, repository, tmp_path),
    ):
        pytest.fail("it cannot be had")


def test_a_model_that_does_not_load_is_explained_and_leaves_nothing(elsewhere, tmp_path):
    broken = with_model(write_repository(tmp_path, fault="no such weights"))
    with (
        pytest.raises(ServerError, match="no such weights"),
        served(elsewhere, broken, tmp_path),
    ):
        pytest.fail("it cannot be had")
    assert loaded(elsewhere) == []


MEASURING = """
import sys, time
from pathlib import Path
from perseus.serving.launchers.remote import remote_server
from perseus.host.signals import terminate_as_exit
from perseus.study.remote import Remote

remote, repository, log = Remote.model_validate_json(sys.argv[1]), *map(Path, sys.argv[2:])
with terminate_as_exit(), remote_server(remote, repository, log, say=print):
    print("serving", flush=True)
    time.sleep(60)
"""


@contextmanager
def measuring(elsewhere: Elsewhere, repository: Path, folder: Path):
    """Run another process, which loads its models into the server and keeps the server for a
    minute."""
    arguments = [elsewhere.remote().model_dump_json(), str(repository), str(folder / "other.log")]
    process = subprocess.Popen(
        [sys.executable, "-c", MEASURING, *arguments],
        env=os.environ | {"PYTHONPATH": str(SCRIPTS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert any("serving" in line for line in process.stdout)
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_measurement_that_is_terminated_unloads_its_models(elsewhere, repository, tmp_path):
    with measuring(elsewhere, repository, tmp_path) as process:
        assert loaded(elsewhere) == ["tiny"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
    assert loaded(elsewhere) == []


def test_what_a_killed_measurement_left_is_removed_by_the_next(elsewhere, repository, tmp_path):
    with measuring(elsewhere, repository, tmp_path) as process:
        with (
            pytest.raises(ServerError, match="'tiny', of the measurement perseus-triton-"),
            served(elsewhere, repository, tmp_path),
        ):
            pytest.fail("another measurement has the server")
        assert loaded(elsewhere) == ["tiny"]
        process.kill()
    assert loaded(elsewhere) == ["tiny"]
    messages: list[str] = []
    with served(elsewhere, repository, tmp_path, messages):
        assert loaded(elsewhere) == ["tiny"]
    assert any("models of an ended measurement: tiny" in line for line in messages)
    assert loaded(elsewhere) == []


def test_what_an_earlier_attempt_left_is_removed_by_the_next(elsewhere, repository, tmp_path):
    """After an interruption of the network, the first attempt cannot unload its models."""
    messages: list[str] = []
    with (
        pytest.raises(ServerError, match="'tiny' was replaced or unloaded"),
        served(elsewhere, repository, tmp_path),
        served(elsewhere, repository, tmp_path, messages),
    ):
        assert loaded(elsewhere) == ["tiny"]
    assert any("models of an ended measurement: tiny" in line for line in messages)
    assert loaded(elsewhere) == []


@pytest.mark.parametrize("name", ["tiny", "other"])
@pytest.mark.parametrize("is_during_the_pushes", [True, False])
def test_models_that_another_machine_pushes_at_the_same_time_are_noticed(
    elsewhere, repository, tmp_path, monkeypatch, is_during_the_pushes, name
):
    push = Control.push

    def push_from_another_machine() -> None:
        (model,) = read_models(repository, "perseus-triton-00000000-1-2-00000000 far/shared")
        model.config.name = name
        address = f"{elsewhere.host}:{elsewhere.grpc_port}"
        with Control(RunningServer(address, "", "", None)) as control:
            push(control, model)

    def push_both(control: Control, model: PushedModel) -> None:
        push(control, model)
        push_from_another_machine()

    if is_during_the_pushes:
        monkeypatch.setattr(Control, "push", push_both)
    began = []
    with (
        pytest.raises(ServerError, match=f"'{name}' belongs to the measurement .* far/shared"),
        served(elsewhere, repository, tmp_path),
    ):
        began.append(True)
        push_from_another_machine()
    assert bool(began) is not is_during_the_pushes


def test_a_pushed_model_that_somebody_unloads_is_noticed(elsewhere, repository, tmp_path):
    with (
        pytest.raises(ServerError, match="'tiny' was replaced or unloaded"),
        served(elsewhere, repository, tmp_path) as server,
        triton_grpc.InferenceServerClient(server.grpc_address) as other,
    ):
        other.unload_model("tiny")


def test_a_server_that_dies_in_mid_run_ends_the_window(elsewhere, repository, tmp_path):
    messages: list[str] = []
    with (
        served(elsewhere, repository, tmp_path, messages) as server,
        route_to(server, client(), "tiny", [BATCH], 5.0) as route,
        Client("tiny", route, [0]) as load_client,
        RequestsWriter(tmp_path / "requests.parquet") as writer,
    ):
        system = LiveSystem(
            server,
            [load_client],
            Arrivals("constant", 1.0),
            [np.random.default_rng(0)],
            writer,
            server_cores=[],
            client_cores=[0],
            longest_sla_s=0.1,
        )
        with (
            pytest.raises(ServerError, match=r"sent no statistics|answered no request"),
            system.offer([50], 120.0) as load,
        ):
            # Perseus sees no processes on a remote host
            assert load.until(1.0).other_cpu_share is None
            elsewhere.process.kill()
            killed_s = time.monotonic()
            load.until(120.0)
        assert time.monotonic() - killed_s < 20
    assert any("could not be unloaded" in line for line in messages)


# The server's own models

SUMS = """
import json
import numpy as np
import triton_python_backend_utils as pb_utils
from perseus_tensors import tensor

class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.inputs = [each["name"] for each in config["input"]]
        self.steady = "unsteady" not in config["parameters"]

    def execute(self, requests):
        return [self.answer(each) for each in requests]

    def answer(self, request):
        given = [pb_utils.get_input_tensor_by_name(request, name) for name in self.inputs]
        total = sum(np.from_dlpack(each).astype(np.float64).sum() for each in given)
        total += 0 if self.steady else 1000 * np.random.rand()
        return pb_utils.InferenceResponse(
            [
                tensor("total", np.array([total])),
                tensor("inputs", np.array([len(given)], np.int32)),
            ]
        )
"""
PAIR = """
name: "{name}" backend: "sums"
input {{ name: "tokens" data_type: TYPE_INT64 dims: -1 }}
input {{ name: "scale" data_type: TYPE_FP16 dims: 2 }}
output {{ name: "total" data_type: TYPE_FP64 dims: 1 }}
output {{ name: "inputs" data_type: TYPE_INT32 dims: 1 }}
instance_group {{ count: 1 kind: KIND_CPU }}
{more}
"""
UNSTEADY = 'parameters { key: "unsteady" value { string_value: "yes" } }'


@pytest.fixture
def own(tmp_path: Path, backends: Path) -> Iterator[Elsewhere]:
    """Serve three loaded models, and a fourth model that is not loaded."""
    (backends / "sums").mkdir()
    (backends / "sums" / "model.py").write_text(SUMS)
    (tmp_path / "own").mkdir()
    repository = write_repository(tmp_path / "own")
    for name, more in {"pair": "", "unsteady": UNSTEADY, "idle": ""}.items():
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(PAIR.format(name=name, more=more))
    (tmp_path / "elsewhere").mkdir()
    with triton_elsewhere(
        tmp_path / "elsewhere",
        backends=backends,
        repository=repository,
        arguments=[f"--load-model={name}" for name in ("tiny", "pair", "unsteady")],
    ) as server:
        yield server


def with_served(protocol: str, *models: str) -> MeasureTask:
    shapes = {"tiny": {}, "pair": {"tokens": (5,)}, "unsteady": {"tokens": (5,)}}
    served = [ServedModel(name=name, shape=shapes.get(name, {})) for name in models]
    tenants = [tenant(f"our-{each.name}", served_model=each) for each in served]
    return measure_task(*tenants, client=client(protocol))


def test_models_that_a_server_has_are_asked_as_they_are_and_stay(own, tmp_path):
    before = loaded(own)
    assert sorted(before) == ["pair", "tiny", "unsteady"]
    with remote_server(own.remote(), None, tmp_path / "server.log", say=print) as server:
        for protocol in ("grpc", "http"):
            tenants = tenants_on(server, with_served(protocol, "tiny", "pair"), {})
            assert verify(tenants) == {"our-tiny": 0, "our-pair": 0}
            assert set(first_inferences(tenants)) == {"our-tiny", "our-pair"}
        tiny, pair = (each.served for each in tenants)
        assert (tiny.version, tiny.backend, tiny.max_batch_size) == ("1", "relu", 4)
        assert [each.dims for each in pair.inputs] == [(5,), (2,)] and pair.max_batch_size == 0
        with pytest.raises(VerificationError, match=r"'total' .* for our-unsteady differs by"):
            verify(tenants_on(server, with_served("grpc", "unsteady"), {}))
        for name, why in (
            ("idle", r"has the model 'idle', but the model is not ready \("),
            ("tinny", r"no model 'tinny' \(did you mean 'tiny'\?\)\. Its models: idle, pair, t"),
        ):
            with pytest.raises(ServerError, match=why):
                tenants_on(server, with_served("grpc", name), {})
    assert loaded(own) == before


def test_a_served_model_is_not_measured_beside_another_measurement(elsewhere, repository, tmp_path):
    with measuring(elsewhere, repository, tmp_path):
        with (
            pytest.raises(ServerError, match="'tiny', of the measurement perseus-triton-"),
            remote_server(elsewhere.remote(), None, tmp_path / "log", say=print),
        ):
            pytest.fail("another measurement has the server")
        assert loaded(elsewhere) == ["tiny"]
