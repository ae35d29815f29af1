"""Tests of the metrics of the running cells and the addresses of their servers, for Prometheus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import exported
import pytest
from exported import BEGUN, MEASURED
from prometheus_client.parser import text_string_to_metric_families

from perseus.measurement.progress.exposition import targets

ROOT = Path(__file__).parents[3]
CELL = {"study": "default", "cell": "cpu1.a-b.mix-1-1.r1"}
A = CELL | {"tenant": "a"}


def read(address, path):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def samples(folder, *cells):
    """Return name, labels and value of all exported samples."""
    with exported.exporter(folder, *cells) as address:
        kind, text = read(address, "/metrics")
    assert kind.startswith("text/plain; version=")
    families = text_string_to_metric_families(text)
    return [(each.name, each.labels, each.value) for found in families for each in found.samples]


def test_all_of_a_cell_is_exported_in_seconds(tmp_path):
    found = samples(tmp_path, MEASURED)
    assert found[0] == ("perseus_cells", {}, 1)
    for name, labels, value in (
        ("cell_info", CELL | {"server": "cpu1", "experiment": "peak"}, 1),
        ("cell_attempt", CELL, 2),
        ("cell_phase", CELL | {"phase": "warm_up"}, 1),
        ("cell_told_timestamp_seconds", CELL, 1000),
        ("cell_end_timestamp_seconds", CELL, 1090),
        ("cell_windows_total", CELL | {"verdict": "pass"}, 3),
        ("cell_windows_total", CELL | {"verdict": "fail"}, 0),
        ("cell_windows_total", CELL | {"verdict": "undecided"}, 0),
        ("cell_windows_total", CELL | {"verdict": "invalid"}, 1),
        ("tenant_offered_requests_per_second", A, 40),
        ("tenant_answered_requests_per_second", A, 30),
        ("tenant_latency_seconds", A | {"percentile": "99.9"}, 0.0615),
        ("tenant_sla_seconds", A | {"percentile": "99.9"}, 0.05),
        ("tenant_sla_seconds", A | {"tenant": "b", "percentile": "95"}, 0.08),
        ("tenant_send_lag_seconds", A, 0.0024),
        ("tenant_send_lag_limit_seconds", A, 0.001),
    ):
        assert (f"perseus_{name}", labels, value) in found
    assert len(found) == 1 + 16


def test_what_is_not_known_yet_has_no_sample(tmp_path):
    names = {name for name, labels, _ in samples(tmp_path, BEGUN) if labels}
    assert names == {
        "perseus_cell_info",
        "perseus_cell_attempt",
        "perseus_cell_told_timestamp_seconds",
        "perseus_cell_windows_total",
        "perseus_tenant_sla_seconds",
    }


def test_without_a_measurement_it_says_so(tmp_path):
    assert samples(tmp_path / "logs") == [("perseus_cells", {}, 0)]


def test_several_cells_are_told_apart(tmp_path):
    found = samples(tmp_path, MEASURED, BEGUN)
    assert ("perseus_cells", {}, 2) in found
    attempts = {labels["cell"]: value for name, labels, value in found if "attempt" in name}
    assert attempts == {MEASURED.cell: 2, BEGUN.cell: 1}


def test_the_servers_are_found_where_they_listen(tmp_path):
    with exported.exporter(tmp_path, MEASURED, BEGUN) as address:
        kind, text = read(address, "/targets")
    (found,) = json.loads(text)
    assert kind == "application/json"
    assert found["targets"] == ["127.0.0.1:12345"]
    assert found["labels"] == CELL | {
        "server": "cpu1",
        "__scheme__": "http",
        "__metrics_path__": "/metrics",
    }
    with exported.exporter(tmp_path / "logs") as address:
        assert json.loads(read(address, "/targets")[1]) == []


def test_a_server_elsewhere_keeps_its_scheme_and_path():
    url = "https://triton.example.org/behind/a/proxy"
    (found,) = targets([MEASURED.model_copy(update={"metrics_url": url})])
    labels = found["labels"]
    assert found["targets"] == ["triton.example.org"]
    assert (labels["__scheme__"], labels["__metrics_path__"]) == ("https", "/behind/a/proxy")


def test_a_server_elsewhere_keeps_the_parameters_of_its_url():
    """If a parameter of a URL has several values, Prometheus takes only one value.

    One invalid label makes Prometheus refuse all targets.
    """
    url = "https://gateway:8002/metrics?target=triton%201&target=2&with-dash=1"
    (found,) = targets([MEASURED.model_copy(update={"metrics_url": url})])
    parameters = {name: value for name, value in found["labels"].items() if "param" in name}
    assert parameters == {"__param_target": "triton 1"}
    assert found["labels"]["__metrics_path__"] == "/metrics"


def test_other_paths_are_not_there(tmp_path):
    with (
        exported.exporter(tmp_path) as address,
        pytest.raises(urllib.error.HTTPError, match=r"404.*Read /metrics or /targets"),
    ):
        read(address, "/")


def test_the_entry_script_serves_the_folder_that_it_is_called_in(tmp_path):
    """The exporter listens on the loopback interface, and does not use the CPUs of servers."""
    command = [sys.executable, str(ROOT / "scripts/exporter.py"), "--port", "0"]
    log = tmp_path / "logs/default/measure/cell.log"
    log.parent.mkdir(parents=True)
    with (
        exported.progress_file(log) as tell,
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process,
    ):
        try:
            text = process.stdout.readline()
            address = text.removeprefix("http://").partition("/")[0]
            assert address.startswith("127.0.0.1:") and str(tmp_path) in text
            tell(MEASURED)
            assert "perseus_cells 1.0" in read(address, "/metrics")[1]
            assert os.sched_getaffinity(process.pid) == {min(os.sched_getaffinity(0))}
            taken = subprocess.run(
                [*command[:-1], address.partition(":")[2]], capture_output=True, text=True
            )
            assert taken.returncode == 1 and "choose another port with --port" in taken.stderr
        finally:
            process.terminate()
