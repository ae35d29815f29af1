"""Perseus measures MLServer, which is not Triton, through the Open Inference Protocol."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from e2e.test_server import wait_until
from live.smoke_study import SNAKEMAKE
from measure_tasks import client
from workflow_files import copy_workflow

from perseus.serving.failures import ServerError
from perseus.serving.launchers.remote import remote_server
from perseus.serving.open_inference import is_live
from perseus.serving.open_models import read_open_model
from perseus.serving.running_server import RunningServer
from perseus.serving.triton_command import free_ports
from perseus.study.remote import Remote
from perseus.study.tasks.measure import ServedModel
from perseus.traffic.connect import connect
from perseus.traffic.route import route_to

MLSERVER = Path(__file__).parents[2] / ".venv-mlserver" / "bin" / "mlserver"
SCORES = ServedModel(name="scores", shape={})


@pytest.fixture(scope="module")
def remote(tmp_path_factory) -> Iterator[Remote]:
    """Run an MLServer with one model; yield its addresses."""
    folder, ports = tmp_path_factory.mktemp("mlserver"), free_ports()
    shutil.copytree(Path(__file__).with_name("scores"), folder / "scores")
    settings = {
        "parallel_workers": 0,
        "host": "127.0.0.1",
        "http_port": ports.http,
        "grpc_port": ports.grpc,
        "metrics_port": ports.metrics,
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    found = Remote(
        host="127.0.0.1",
        grpc=f"127.0.0.1:{ports.grpc}",
        http=f"127.0.0.1:{ports.http}",
        metrics=f"http://127.0.0.1:{ports.metrics}/metrics",
    )
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([MLSERVER, "start", folder], stdout=log, stderr=log, cwd=folder)
    try:
        server = RunningServer(found.grpc, found.http, found.metrics, None)
        assert wait_until(lambda: is_live(server, 1.0), 60), (folder / "log").read_text()
        yield found
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def server(remote, tmp_path) -> Iterator[RunningServer]:
    with remote_server(remote, None, tmp_path / "log", say=print) as found:
        yield found


def test_it_is_asked_over_grpc_and_offers_no_extension(server, tmp_path):
    assert (server.protocol, server.extensions) == ("grpc", frozenset())
    assert (tmp_path / "log").read_text().startswith("mlserver 1.7.1 at 127.0.0.1:")


def test_a_server_without_grpc_is_asked_over_http(remote, tmp_path):
    closed = remote.model_copy(update={"grpc": "127.0.0.1:9"})
    with remote_server(closed, None, tmp_path / "log", say=print) as server:
        assert server.protocol == "http"
        found = read_open_model(server, SCORES, 4)
    assert (found.inputs[0].dims, found.outputs[0].dims) == ((3, 32, 32), (10,))
    assert (found.max_batch_size, found.dynamic_batching, found.version) == (4, None, "")


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_its_answers_are_those_of_the_model(server, protocol):
    images = np.random.default_rng(1).random((4, 3, 32, 32), np.float32)
    batches, settings = [{"pixels": images}], client(protocol=protocol)
    with (
        route_to(server, settings, "scores", batches, 5.0, ["scores"]) as route,
        connect(route) as transport,
    ):
        answer = transport.infer(0, 5.0)
    assert np.array_equal(answer["scores"], 2 * images.reshape(4, -1)[:, :10])


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_model_that_it_has_not_loaded_is_refused(remote, server, protocol):
    asked = replace(server, protocol=protocol)
    post(f"http://{remote.http}/v2/repository/models/scores/unload")
    try:
        with pytest.raises(ServerError, match=r"(?i)scores.* not found"):
            read_open_model(asked, SCORES, 1)
    finally:
        post(f"http://{remote.http}/v2/repository/models/scores/load")
    assert read_open_model(asked, SCORES, 1).name == "scores"


def post(url: str) -> None:
    urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=10).close()


STUDY = """
study: open
models:
  - {{name: mine, served_model: scores, sla: {{percentile: 95, latency_ms: 500}}}}
servers:
  - name: far
    launcher: remote
    remote: {{host: 127.0.0.1, grpc: "{grpc}", http: "{http}", metrics: "{metrics}"}}
    cores: 1
scenarios:
  - {{name: solo, servers: [far], tenants: [{{model: mine, request_batch_size: {images}}}],
      preset: smoke}}
"""


def run(folder: Path, remote: Remote, images: int) -> tuple[Path, Any]:
    """Run a study in a copy of the workflow; return the folder and the finished process."""
    folder.mkdir()
    root = copy_workflow(folder)
    addresses = {"grpc": remote.grpc, "http": remote.http, "metrics": remote.metrics}
    (root / "config" / "config.yaml").write_text(STUDY.format(images=images, **addresses))
    command = [*SNAKEMAKE, "all"]
    return root, subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)


def test_a_study_ends_with_a_report_that_says_once_what_the_server_does_not_tell(remote, tmp_path):
    root, done = run(tmp_path / "workflow", remote, images=4)
    assert done.returncode == 0, done.stdout + done.stderr
    results = root / "results" / "open"
    (file,) = results.glob("raw/*/record.json")
    record = json.loads(file.read_text())
    # on a busy machine a short study may certify no rate
    assert record["outcome"] in ("ok", "uncertified")
    assert record["server_name"] == "mlserver"
    assert (record["triton_version"], record["tells_statistics"]) == ("1.7.1", False)
    assert record["served_models"]["mine"]["dynamic_batching"] is None
    (tenant,) = pq.read_table(results / "tables" / "tenants.parquet").to_pylist()
    assert tenant["estimate_rps"] > 0
    assert [tenant[f"{part}_ms"] for part in ("queue", "compute", "client")] == [None] * 3
    text = html.unescape(re.sub(r"<[^>]+>", " ", (results / "report.html").read_text()))
    content = "These servers report no statistics: far (mlserver 1.7.1)."
    assert text.count(content) == 1


def test_requests_that_are_too_large_are_refused_with_both_sizes(remote, tmp_path):
    """The server accepts messages of at most 4 MiB. A request with 400 images has 4.7 MiB."""
    _, done = run(tmp_path / "workflow", remote, images=400)
    assert done.returncode == 1
    text = "a request has 4,915,246 bytes, and the server accepts at most 4,194,304 bytes"
    assert f"{text} (lower request_batch_size, or raise" in " ".join(
        (done.stdout + done.stderr).split()
    )
