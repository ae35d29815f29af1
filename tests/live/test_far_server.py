"""Tests with a server over a slow network, and studies on servers that Perseus did not start."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pyarrow.parquet as pq
import pytest
from e2e.test_remote import BATCH, loaded, repository, served
from e2e.test_server import backends, wait_until, write_repository
from live.smoke_study import SNAKEMAKE
from measure_tasks import client
from slow_link import far_host
from triton_elsewhere import triton_elsewhere
from workflow_files import copy_workflow

from perseus.serving.server_facts import server_facts
from perseus.traffic.client import sequential_ms
from perseus.traffic.route import route_to

__all__ = ["backends", "repository"]

pytestmark = pytest.mark.alone


def test_a_far_server_over_a_lossy_link(tmp_path, backends, repository):
    """The latency includes the round trip. TCP sends lost packets again, so no request is lost."""
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
            # some packets were sent again
            assert np.max(answered_ms) > 1.5 * np.median(answered_ms)
        assert wait_until(lambda: loaded(elsewhere) == [], 5)


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


def test_a_study_of_a_model_that_a_server_has(tmp_path, backends):
    """The server runs without model control, and nothing is exported."""
    for name in ("own", "elsewhere", "workflow"):
        (tmp_path / name).mkdir()
    root = copy_workflow(tmp_path / "workflow")
    with triton_elsewhere(
        tmp_path / "elsewhere",
        backends=backends,
        control="none",
        repository=write_repository(tmp_path / "own"),
    ) as elsewhere:
        ports = {"grpc": elsewhere.grpc_port, "http": elsewhere.http_port}
        study = SERVED_STUDY.format(**ports, metrics=elsewhere.metrics_port)
        (root / "config" / "config.yaml").write_text(study)
        command = [*SNAKEMAKE, OF_MINE]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr
        assert loaded(elsewhere) == ["tiny"]
    record = json.loads((root / OF_MINE / "record.json").read_text())
    assert (record["outcome"], record["cell"]["preset"]) == ("ok", "smoke")
    assert record["levels"][0]["answered_rps"] > 10
    assert record["max_batch_sizes"] == {"mine": 4}
    served = record["served_models"]["mine"]
    assert (served["name"], served["version"], served["backend"]) == ("tiny", "1", "relu")
    assert served["inputs"] == [{"name": "input", "datatype": "FP32", "dims": [3, 8, 8]}]
    window = pq.read_table(root / OF_MINE / "windows.parquet").to_pylist()[0]
    # the counters of Triton have values
    assert window["tenant"] == "mine" and window["compute_ms"] > 0
    assert {path.name for path in (root / "results" / "served").iterdir()} == {"raw"}
    assert not (root / "model_repository" / "served").exists()


# A complete study, from the export to the raw results

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


def test_a_study_on_a_remote_server_and_its_death(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "workflow").mkdir()
    root = copy_workflow(tmp_path / "workflow")
    with triton_elsewhere(tmp_path / "elsewhere") as elsewhere:
        ports = {"grpc": elsewhere.grpc_port, "http": elsewhere.http_port}
        study = STUDY.format(**ports, metrics=elsewhere.metrics_port)
        (root / "config" / "config.yaml").write_text(study)
        command = [*SNAKEMAKE, LOOP]

        refused = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=200)
        text = refused.stdout + refused.stderr
        assert refused.returncode == 1 and "PERSEUS_TEST_TOKEN, which is not set" in text

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
                [*SNAKEMAKE, PEAK],
                cwd=root,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        assert wait_until(lambda: "warm_up " in (root / "output.txt").read_text(), 60)
        elsewhere.process.kill()
        assert process.wait(60) == 0
        record = json.loads((root / PEAK / "record.json").read_text())
        assert record["outcome"] == "failed"
    # The reason depends on what fails first: reading counters, a request or a new connection.
    words = ("statistics", "the server has closed the connection", "refused")
    assert any(each in record["reason"] for each in words), record["reason"]
    written = [path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert len(written) > 20
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []
