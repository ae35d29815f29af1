"""The launcher `remote` against a real tritonserver that was started apart, near and far."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import tritonclient.grpc as triton_grpc
from e2e.test_server import SCRIPTS, backends, infer, signal_like, wait_until, write_repository
from e2e.test_smoke import SNAKEMAKE, workflow_copy
from measure_tasks import client, measure_task, tenant
from slow_link import far_host
from triton_elsewhere import Elsewhere, triton_elsewhere

from perseus.measurement.first_inferences import first_inferences
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.raw_results import RequestsWriter
from perseus.measurement.tenant_under_test import tenants_on
from perseus.measurement.verify import VerificationError, verify
from perseus.serving.failures import ServerError
from perseus.serving.launchers.remote import remote_triton
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
    """The test's backend needs no network, but every model of ours has its file."""
    (repository / "tiny" / "1" / "model.onnx").write_bytes(bytes(1000))
    return repository


def loaded(elsewhere: Elsewhere) -> list[str]:
    with triton_grpc.InferenceServerClient(f"{elsewhere.host}:{elsewhere.grpc_port}") as client:
        return [m.name for m in client.get_inference_statistics(client_timeout=5).model_stats]


@contextmanager
def served(elsewhere: Elsewhere, repository: Path, folder: Path, said: list[str] | None = None):
    say = (said if said is not None else []).append
    with remote_triton(elsewhere.remote(), repository, folder / "server.log", say=say) as server:
        yield server


@pytest.mark.alone
@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_models_are_pushed_answer_and_are_unloaded(elsewhere, repository, tmp_path, protocol):
    with served(elsewhere, repository, tmp_path) as server:
        assert loaded(elsewhere) == ["tiny"] and server.pids() == []
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
from perseus.serving.launchers.remote import remote_triton
from perseus.host.signals import terminate_as_exit
from perseus.study.remote import Remote

remote, repository, log = Remote.model_validate_json(sys.argv[1]), *map(Path, sys.argv[2:])
with terminate_as_exit(), remote_triton(remote, repository, log, say=print):
    print("serving", flush=True)
    time.sleep(60)
"""


@contextmanager
def measuring(elsewhere: Elsewhere, repository: Path, folder: Path):
    """Another process that has its models on the server."""
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
    said: list[str] = []
    with served(elsewhere, repository, tmp_path, said):
        assert loaded(elsewhere) == ["tiny"]
    assert any("a killed measurement left: tiny" in line for line in said)
    assert loaded(elsewhere) == []


def test_a_server_that_dies_in_mid_run_ends_the_window(elsewhere, repository, tmp_path):
    said: list[str] = []
    with (
        served(elsewhere, repository, tmp_path, said) as server,
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
            pytest.raises(ServerError, match=r"told no statistics|answered nothing"),
            system.offer([50], 120.0) as load,
        ):
            load.until(1.0)
            elsewhere.process.kill()
            killed_s = time.monotonic()
            load.until(120.0)
        assert time.monotonic() - killed_s < 20
    assert any("could not be unloaded" in line for line in said)


@pytest.mark.alone
def test_a_far_server_over_a_lossy_link(tmp_path, backends, repository):
    """Latency includes the way there and back; what the link loses is sent again, and not lost."""
    (tmp_path / "elsewhere").mkdir()
    with (
        far_host(delay_ms=15, loss_percent=1) as (host, inside),
        triton_elsewhere(
            tmp_path / "elsewhere", host=host, prefix=inside, backends=backends
        ) as elsewhere,
    ):
        with served(elsewhere, repository, tmp_path) as server:
            assert 30 <= server_facts(server)["round_trip_p50_ms"] < 60
            with route_to(server, client(), "tiny", [BATCH], 5.0) as route:
                answered_ms = sequential_ms(route, 100, 30.0)
            assert len(answered_ms) == 100 and np.median(answered_ms) >= 30
            assert np.max(answered_ms) > 1.5 * np.median(answered_ms)  # some were sent again
        assert wait_until(lambda: loaded(elsewhere) == [], 5)


# Models that the server has of its own

SUMS = """
import json
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        self.inputs = [each["name"] for each in config["input"]]
        self.steady = "unsteady" not in config["parameters"]

    def execute(self, requests):
        return [self.answer(each) for each in requests]

    def answer(self, request):
        given = [pb_utils.get_input_tensor_by_name(request, name) for name in self.inputs]
        total = sum(each.as_numpy().astype(np.float64).sum() for each in given)
        total += 0 if self.steady else 1000 * np.random.rand()
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("total", np.array([total])),
                pb_utils.Tensor("inputs", np.array([len(given)], np.int32)),
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
    """It has loaded three models of its own, and has another one."""
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
    with remote_triton(own.remote(), None, tmp_path / "server.log", say=print) as server:
        for protocol in ("grpc", "http"):
            tenants = tenants_on(server, with_served(protocol, "tiny", "pair"), {})
            assert verify(tenants) == {"our-tiny": 0, "our-pair": 0}
            assert set(first_inferences(tenants)) == {"our-tiny", "our-pair"}
        tiny, pair = (each.served for each in tenants)
        assert (tiny.version, tiny.backend, tiny.max_batch_size) == ("1", "relu", 4)
        assert [each.dims for each in pair.inputs] == [(5,), (2,)] and pair.max_batch_size == 0
        with pytest.raises(VerificationError, match=r"'total' .* of our-unsteady differs by"):
            verify(tenants_on(server, with_served("grpc", "unsteady"), {}))
        for name, why in (
            ("idle", r"has 'idle', but it is not ready \("),
            ("tinny", r"no model 'tinny' \(did you mean 'tiny'\?\)\. Its models: idle, pair, t"),
        ):
            with pytest.raises(ServerError, match=why):
                tenants_on(server, with_served("grpc", name), {})
    assert loaded(own) == before


def test_a_served_model_is_not_measured_beside_another_measurement(elsewhere, repository, tmp_path):
    with measuring(elsewhere, repository, tmp_path):
        with (
            pytest.raises(ServerError, match="'tiny', of the measurement perseus-triton-"),
            remote_triton(elsewhere.remote(), None, tmp_path / "log", say=print),
        ):
            pytest.fail("another measurement has the server")
        assert loaded(elsewhere) == ["tiny"]


SERVED_STUDY = """
study: served
models:
  - {{name: mine, served_model: tiny, sla: {{percentile: 95, latency_ms: 50}}}}
servers:
  - name: far
    launcher: remote
    remote: {{host: 127.0.0.1, grpc: "127.0.0.1:{grpc}", http: "127.0.0.1:{http}",
              metrics: "http://127.0.0.1:{metrics}/metrics"}}
    cores: 1
    price: {{instance: n1-standard-1, region: us-central1}}
scenarios:
  - {{name: mine, servers: [far], tenants: [{{model: mine}}], preset: smoke,
      experiments: [{{kind: concurrency, concurrencies: [2]}}]}}
"""
OF_MINE = "results/served/raw/far.mine.concurrency.r1"


@pytest.mark.alone
def test_a_study_of_a_model_that_a_server_has(tmp_path, backends):
    """The server is in no model control, and nothing is exported."""
    for name in ("own", "elsewhere", "workflow"):
        (tmp_path / name).mkdir()
    root = workflow_copy(tmp_path / "workflow")
    with triton_elsewhere(
        tmp_path / "elsewhere",
        backends=backends,
        control="none",
        repository=write_repository(tmp_path / "own"),
    ) as elsewhere:
        ports = {"grpc": elsewhere.grpc_port, "http": elsewhere.http_port}
        study = SERVED_STUDY.format(**ports, metrics=elsewhere.metrics_port)
        (root / "config" / "config.yaml").write_text(study)
        command = [*SNAKEMAKE, f"{OF_MINE}/record.json"]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr
        assert loaded(elsewhere) == ["tiny"]
    record = json.loads((root / OF_MINE / "record.json").read_text())
    assert (record["outcome"], record["cell"]["preset"]) == ("ok", "smoke")
    assert record["levels"][0]["answered_rps"] > 10
    served = record["served_models"]["mine"]
    assert (served["name"], served["version"], served["backend"]) == ("tiny", "1", "relu")
    assert served["inputs"] == [{"name": "input", "datatype": "FP32", "dims": [3, 8, 8]}]
    window = pq.read_table(root / OF_MINE / "windows.parquet").to_pylist()[0]
    assert window["tenant"] == "mine" and window["compute_ms"] > 0  # Triton's counters are found
    assert {path.name for path in (root / "results" / "served").iterdir()} == {"raw"}
    assert not (root / "model_repository" / "served").exists()


# A study, from export to raw results

STUDY = """
study: remote
models:
  - {{name: squeezenet1_1, input_size: 64, sla: {{percentile: 95, latency_ms: 50}}}}
servers:
  - name: far
    launcher: remote
    remote: {{host: 127.0.0.1, grpc: "127.0.0.1:{grpc}", http: "127.0.0.1:{http}",
              metrics: "http://127.0.0.1:{metrics}/metrics",
              headers: [{{name: x-token, env: PERSEUS_TEST_TOKEN}}]}}
    cores: 1
    price: {{instance: n1-standard-1, region: us-central1}}
scenarios:
  - {{name: squeezenet1_1, servers: [far], tenants: [{{model: squeezenet1_1}}],
      experiments: [{{kind: concurrency, concurrencies: [2]}}]}}
measurement: {{precision: smoke}}
"""
LOOP, PEAK = (f"results/remote/raw/far.squeezenet1_1.{kind}.r1" for kind in ("concurrency", "peak"))
SECRET = "t0ken-of-the-test"


@pytest.mark.alone
def test_a_study_on_a_remote_server_and_its_death(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "workflow").mkdir()
    root = workflow_copy(tmp_path / "workflow")
    with triton_elsewhere(tmp_path / "elsewhere") as elsewhere:
        ports = {"grpc": elsewhere.grpc_port, "http": elsewhere.http_port}
        study = STUDY.format(**ports, metrics=elsewhere.metrics_port)
        (root / "config" / "config.yaml").write_text(study)
        command = [*SNAKEMAKE, f"{LOOP}/record.json"]

        refused = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=200)
        said = refused.stdout + refused.stderr
        assert refused.returncode == 1 and "PERSEUS_TEST_TOKEN is not set" in said

        monkeypatch.setenv("PERSEUS_TEST_TOKEN", SECRET)
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr
        record = json.loads((root / LOOP / "record.json").read_text())
        assert record["triton_version"] == "2.51.0" and record["round_trip_p50_ms"] > 0
        assert record["outcome"] == "ok" and record["host"]["server_cores"] == []
        assert record["levels"][0]["answered_rps"] > 10
        monitor = pq.read_table(root / LOOP / "monitor.parquet").to_pandas()
        assert "nv_inference_request_success" in set(monitor["metric"])
        assert "server_cores_busy" not in set(monitor["metric"])
        assert loaded(elsewhere) == []

        with (root / "output.txt").open("w") as output:
            process = subprocess.Popen(
                [*SNAKEMAKE, f"{PEAK}/record.json"],
                cwd=root,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        assert wait_until(lambda: "warm_up " in (root / "output.txt").read_text(), 60)
        elsewhere.process.kill()
        assert process.wait(60) == 0
        record = json.loads((root / PEAK / "record.json").read_text())
        assert record["outcome"] == "failed"
    assert any(word in record["reason"] for word in ("statistics", "refused")), record["reason"]
    written = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert len(written) > 20
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []
