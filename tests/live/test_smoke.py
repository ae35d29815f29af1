"""The study smoke on a real Triton, from export to report: results, leftovers and failures."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from live.smoke_study import (
    PEAK,
    kill_server,
    left_behind,
    running,
    snakemake,
    started_by,
    wait_until,
)

from perseus.results.check import check

pytestmark = pytest.mark.alone


def cell_whose_server_died(root: Path) -> Path:
    records = (root / "results/smoke/raw").glob("*/record.json")
    (died,) = (
        record.parent
        for record in records
        if "died" in json.loads(record.read_text())["attempts"][0]["reason"]
    )
    return died


def other_cells(root: Path) -> set[Path]:
    """Return the cells whose server did not die."""
    return set((root / "results/smoke/raw").iterdir()) - {cell_whose_server_died(root)}


def test_everything_is_there_and_nothing_contradicts(finished):
    root, _ = finished
    results = root / "results" / "smoke"
    assert 10_000 < (results / "report.html").stat().st_size <= 2_000_000
    assert len(list((results / "figures").glob("*.svg"))) == 12
    check(results / "tables", {})


def test_nothing_is_left_running_and_no_shared_memory(finished):
    assert left_behind(finished[0]) == []
    assert list(finished[0].rglob("*.partial")) == []


def test_progress_says_what_is_offered_how_it_went_and_where_to_look(finished):
    output = finished[1]
    assert "bracket" in output and "/s p95 " in output and " s left" in output
    assert "results/smoke/report.html" in output
    assert "4 of 4 cells to measure, about 1 min of load, at most 22 min." in output


def test_served_answers_equal_those_of_torch(finished):
    for cell in other_cells(finished[0]):
        found = json.loads((cell / "record.json").read_text())
        errors = found["relative_errors"]
        assert errors and all(error < 1e-3 for error in errors.values())
        assert set(found["errors"]) == set(errors) and not any(found["errors"].values())
        # On a busy host, a mix may lack a dedicated peak. A cell without windows has
        # no client.
        windows = pq.read_table(cell / "windows.parquet").num_rows
        assert found["host"]["client_realtime"] in ((True, False) if windows else (None,))


def test_every_request_of_every_window_is_kept_and_sent_on_time(finished):
    for cell in other_cells(finished[0]):
        requests = pq.read_table(cell / "requests.parquet").to_pandas()
        windows = pq.read_table(cell / "windows.parquet").to_pandas()
        assert set(requests["window"]) == set(windows["window"])
        answered = requests[requests["status"] == "ok"]
        assert (answered["done_ns"] > answered["sent_ns"]).all()
        assert (answered["sent_ns"] >= answered["intended_ns"]).all()
        counted = windows.groupby("window")["requests"].sum()
        assert (requests.groupby("window").size() >= counted).all()


def test_the_servers_own_counters_agree_with_the_clients(finished):
    """Triton counts the responses to the clients, and some requests of check and warm-up."""
    for cell in other_cells(finished[0]):
        monitor = pq.read_table(cell / "monitor.parquet").to_pandas()
        served = monitor[monitor["metric"] == "nv_inference_request_success"]["value"].sum()
        requests = pq.read_table(cell / "requests.parquet").to_pandas()
        answered = (requests["status"] == "ok").sum()
        cancelled = (requests["status"] == "pending").sum()
        record = json.loads((cell / "record.json").read_text())
        assert answered <= served <= answered + cancelled + 120 * len(record["attempts"])


def test_measurements_did_not_overlap(finished):
    spans = []
    for path in (finished[0] / "results/smoke/raw").glob("*/record.json"):
        record = json.loads(path.read_text())
        spans.append((record["started"]["monotonic_ns"], record["finished_monotonic_ns"]))
    spans.sort()
    assert len(spans) == 4
    assert np.all([end < start for (_, end), (start, _) in itertools.pairwise(spans)])


def test_a_second_run_has_nothing_to_do(finished):
    done = snakemake(finished[0], "all")
    assert done.returncode == 0 and "Nothing to be done" in done.stdout


def test_a_model_that_does_not_load_fails_its_job_with_the_servers_reason(finished, tmp_path):
    root = tmp_path / "broken"
    shutil.copytree(finished[0], root, symlinks=True)
    scenario = root / "model_repository/smoke/cpu1.squeezenet1_1"
    (scenario / "squeezenet1_1/1/model.onnx").write_bytes(b"not a model")
    done = snakemake(root, PEAK, "--forcerun", PEAK)
    assert done.returncode == 1
    assert "failed to load 'squeezenet1_1'" in done.stdout and "Protobuf parsing" in done.stdout
    assert "Traceback" not in done.stdout.split("RuleException")[0]
    assert left_behind(root) == []


def has_clients(process: subprocess.Popen[bytes]) -> bool:
    return any("sender.main" in each for each in started_by(process).values())


def test_an_interrupted_run_leaves_nothing_and_goes_on_later(finished, tmp_path):
    root = tmp_path / "interrupted"
    shutil.copytree(finished[0], root, symlinks=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with running(root, PEAK, "--forcerun", PEAK) as process:
            wait_until(lambda process=process: has_clients(process), process)
            time.sleep(1)  # one second of load
            os.killpg(process.pid, number)
            assert process.wait(60) != 0
        ended_s = time.monotonic()  # a terminal that closes ends Snakemake at once
        while left_behind(root) and time.monotonic() < ended_s + 10:
            time.sleep(0.1)
        assert left_behind(root) == [], number
        assert not (root / PEAK / "record.json").exists()
    planned = snakemake(root, "--dry-run", "measurements")
    assert planned.returncode == 0 and "Measuring cpu1.squeezenet1_1.peak.r1" in planned.stdout


def test_a_server_that_dies_under_load_is_measured_once_more_on_a_fresh_one(finished):
    root, output = finished
    cell = cell_whose_server_died(root)
    record = json.loads((cell / "record.json").read_text())
    ends = [each["outcome"] for each in record["attempts"]]
    assert (len(ends), record["attempt"]) == (2, 2)
    assert [end == "failed" for end in ends] == [True, False]
    (errors,) = record["errors"].values()
    assert "refused" in errors
    assert all(error < 1e-3 for error in record["relative_errors"].values())
    windows = pq.read_table(cell / "windows.parquet").to_pandas()
    assert set(windows["attempt"]) == {1, 2}
    if record["certified_window"] >= 0:
        row = windows[windows["window"] == record["certified_window"]].iloc[0]
        assert (row["attempt"], row["phase"], row["verdict"]) == (2, "certify", "pass")
        assert row["scale"] == pytest.approx(record["certified_scale"])
    assert "the server ended during the measurement; measuring again on a fresh server" in output


def test_a_cell_whose_servers_die_twice_has_failed(finished, tmp_path):
    root = tmp_path / "died"
    shutil.copytree(finished[0], root, symlinks=True)
    with running(root, PEAK, "--forcerun", PEAK) as process:
        for count in (1, 2):
            kill_server(root, process, "s] about ", count)  # in the warm-up
        assert process.wait(100) == 0
    record = json.loads((root / PEAK / "record.json").read_text())
    assert [each["outcome"] for each in record["attempts"]] == ["failed", "failed"]
    assert (record["outcome"], record["certified_scale"]) == ("failed", None)
    text = (root / "output.txt").read_text()
    assert "cpu1.squeezenet1_1.peak.r1: failed: the server died" in text
    assert left_behind(root) == []
