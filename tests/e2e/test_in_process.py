"""Perseus runs a network without a server, and measures a cell of a catalogue."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from measure_tasks import measure_task, server, tenant

from perseus.host.files import write_json
from perseus.measurement.accuracy import Accuracy, accuracy
from perseus.measurement.cell import Inputs, Outputs
from perseus.measurement.in_process import InProcessError, has_backend, in_process_ms, printed_ms
from perseus.measurement.measure import measure
from perseus.measurement.tenant_under_test import tenants_on
from perseus.models.images import random_pictures
from perseus.models.labelled import Labelled
from perseus.models.onnx_network import OnnxNetwork
from perseus.models.pictures import Pictures
from perseus.models.preprocess import Preprocessing
from perseus.models.repository import write_tenant
from perseus.serving.launch import launch
from perseus.study.experiments.catalogue import Run
from perseus.study.sla import Sla
from perseus.study.tasks.repository import ServedTenant

CORE = sorted(os.sched_getaffinity(0))[-1:]
RUN = Run(times_unloaded=3.0, in_process_s=0.3)


def test_what_a_library_prints_at_the_end_is_not_the_result():
    assert printed_ms(["loading", "[1.5, 2.5]", "[W1] leaked", "bye"]).tolist() == [1.5, 2.5]
    assert printed_ms(["Killed"]) is None


def task(runtime):
    """Return the task of a cell of a catalogue, whose requests have four images."""
    settings = {"request_batch_size": 4, "max_batch_size": 8, "sla": Sla(latency_ms=500.0)}
    return measure_task(tenant("net", **settings), run=RUN, server=server(runtime=runtime))


@pytest.fixture
def repository(exported, tmp_path):
    """Return a function that writes a repository in which a runtime serves `net`."""
    folder, check = exported

    def written(runtime) -> Path:
        served = ServedTenant(name="net", model="model", runtime=runtime)
        write_tenant(tmp_path / runtime, served, folder / "model.onnx", check)
        return tmp_path / runtime

    return written


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_a_backend_runs_without_triton(repository, tmp_path, runtime):
    of = task(runtime)
    assert has_backend(of)
    times_ms = in_process_ms(repository(runtime), of, CORE, 0.2, tmp_path / "log")
    assert len(times_ms) >= 3 and (times_ms > 0).all()


def test_a_network_that_does_not_load_says_why(repository, tmp_path):
    root = repository("onnxruntime")
    (root / "net/1/model.onnx").write_bytes(b"no network")
    with pytest.raises(InProcessError, match="the run of net without a server failed"):
        in_process_ms(root, task("onnxruntime"), CORE, 0.2, tmp_path / "log")


def test_the_accuracy_is_that_of_the_responses_to_labelled_images(repository, exported, tmp_path):
    """Every second label is the class with the highest score; the other labels are wrong."""
    like = Preprocessing(64, 64, (0.5,) * 3, (0.2,) * 3, "BILINEAR")
    files = [np.fromfile(name, np.uint8) for name in random_pictures(tmp_path, 7, seed=1)]
    images = Labelled(Pictures(files, like), np.zeros(7, np.int64))
    network = OnnxNetwork(str(exported[0] / "model.onnx"), "net")
    scores = network.answer({"input": images.tensors(range(7))})["output"]
    classes = (scores.argmax(axis=1) + np.arange(7) % 2) % scores.shape[1]
    np.savez(tmp_path / "labelled.npz", **replace(images, classes=classes).arrays())
    of = task("onnxruntime")
    references = {"net": exported[0] / "reference.npz"}
    with launch(of.server, repository("onnxruntime"), tmp_path / "log", CORE, say=print) as running:
        (tenant,) = tenants_on(running, of, references)
        assert accuracy(tenant, tmp_path / "labelled.npz") == Accuracy(images=7, correct=4)


@pytest.mark.alone
def test_a_cell_of_a_catalogue_has_its_rates_and_both_limits(exported, repository, tmp_path):
    inputs = Inputs(repository("onnxruntime"), {"net": exported[0] / "reference.npz"}, [], None)
    outputs = Outputs.within(tmp_path / "raw")
    (tmp_path / "raw").mkdir()
    measure(task("onnxruntime"), inputs, outputs, print)
    record = json.loads(outputs.record.read_text())
    assert record["in_process_ms"] > 0 and record["in_process_error"] == ""
    # other processes may disturb the measurement
    assert record["outcome"] in ("ok", "disturbed", "client_limited"), record["reason"]
    if record["outcome"] == "ok":
        assert [each["stated"] for each in record["limits"]] == ["times_unloaded", "latency"]
        of_multiple, of_model = record["limits"]
        assert of_multiple["sla_ms"] == pytest.approx(3 * record["unloaded_p50_ms"]["net"])
        assert of_model["sla_ms"] == 500.0
        windows = pq.read_table(outputs.windows).to_pandas()
        within = windows[(windows["phase"] == "within") & (windows["window_verdict"] == "pass")]
        for limit in record["limits"]:
            limit_rps, certified_rps = limit["limit_rps"], limit["certified_rps"]
            assert 0.2 * record["full_rps"] < limit_rps <= 1.05 * record["full_rps"]
            if certified_rps is not None:
                assert certified_rps / limit_rps in (pytest.approx(0.8), pytest.approx(0.6))
                assert certified_rps in list(within["offered_rps"])
    write_json(tmp_path / "seen.json", record)
