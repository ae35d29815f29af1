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
from measure_tasks import client
from slow_link import far_host
from triton_elsewhere import Elsewhere, triton_elsewhere

from perseus.measurement.live_system import LiveSystem
from perseus.measurement.raw_results import RequestsWriter
from perseus.serving.failures import ServerError
from perseus.serving.launchers.remote import remote_triton
from perseus.serving.server_facts import server_facts
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
