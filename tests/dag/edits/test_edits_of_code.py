"""The jobs that run again after an edit of the code, an upgrade, or the loss of a result."""

import json
import os
import re
import shutil

import pytest
from dag.edits.edited_study import (
    ALL_CELLS,
    ALONE,
    CEILING,
    CODE,
    MIX,
    MOBILENET,
    MOBILENET_PEAK,
    RAW_RESULTS,
    RESNET,
    RESNET_PEAK,
    reconfigured,
    repositories,
)
from fake_engine import image_id, install


def test_a_new_kind_of_experiment_brings_its_table_and_measures_nothing(edited, downstream):
    """A new kind of experiment adds a phase, so the test also edits the description of the column
    `phase`."""
    layers = ("study/experiments", "measurement/experiments", "results/tables", "report/figures")
    for layer in layers:
        folder = edited.root / "scripts" / "perseus" / layer
        text = (folder / "concurrency.py").read_text().replace("concurrency", "new")
        (folder / "new.py").write_text(text)
    edited.edit("scripts/perseus/study/experiments/__init__.py", '("peak",', '("peak", "new",')
    experiment = edited.root / "scripts" / "perseus" / "measurement" / "experiments" / "new.py"
    assert 'system, "new", ' in experiment.read_text()
    edited.edit(RAW_RESULTS, " In experiments with", " In new ones: new. In experiments with")
    assert edited.stale() == downstream


def test_the_workflow_runs_the_edited_code(edited, tmp_path):
    """The other tests of edits of code rely on this test."""
    edited.edit("scripts/perseus/study/validation.py", '"unknown key{', '"new words{')
    (tmp_path / "bad.yaml").write_text("colour: red")
    _, output, errors = edited.plan("--configfile", str(tmp_path / "bad.yaml"))
    assert "colour: new words" in output + errors


@pytest.mark.parametrize("module", ["perseus/peak/search.py", "backends/onnxruntime/model.py"])
def test_code_of_the_measurement(edited, downstream, module):
    edited.append(f"scripts/{module}", CODE)
    assert edited.stale() == ALL_CELLS | downstream


def test_code_of_the_client(edited, downstream):
    edited.append("scripts/perseus/traffic/client.py", CODE)
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream


def test_code_of_a_protocol(edited, downstream):
    edited.append("scripts/perseus/traffic/http_transport.py", CODE)
    assert edited.stale() == set()
    edited.append("scripts/perseus/traffic/grpc_transport.py", CODE)
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream


def test_code_of_the_null_model(edited, priced_jobs):
    edited.append("scripts/backends/null/model.py", CODE)
    assert edited.stale() == {CEILING} | priced_jobs


def test_a_module_however_it_is_imported(edited, downstream):
    for name, statement in (("one", "import perseus.peak.one"), ("two", "from . import two")):
        (edited.root / "scripts" / "perseus" / "peak" / f"{name}.py").write_text("FACTOR = 1\n")
        edited.append("scripts/perseus/peak/search.py", f"{statement}\n")
    edited.accept()
    assert edited.stale() == set()
    for name in ("one", "two"):
        edited.edit(f"scripts/perseus/peak/{name}.py", "FACTOR = 1", "FACTOR = 2")
        assert edited.stale() == ALL_CELLS | downstream
        edited.edit(f"scripts/perseus/peak/{name}.py", "FACTOR = 2", "FACTOR = 1")


def test_code_of_what_the_study_does_not_do(edited):
    for module in (
        "perseus/measurement/experiments/concurrency",
        "perseus/serving/launchers/docker",
        "perseus/models/runtimes/openvino",
        "backends/openvino/model",
    ):
        edited.append(f"scripts/{module}.py", CODE)
    assert edited.stale() == set()


@pytest.mark.parametrize("module", ["measurement/experiments/peak", "serving/launchers/embedded"])
def test_code_that_is_found_by_name(edited, downstream, module):
    edited.append(f"scripts/perseus/{module}.py", CODE)
    ceiling = {CEILING} if "launchers" in module else set()
    assert edited.stale() == ALL_CELLS | ceiling | downstream


def test_code_of_the_repository(edited, downstream):
    """After an edit of the module that writes the repository, all cells are measured again."""
    edited.append("scripts/perseus/models/repository.py", CODE)
    assert edited.stale() == repositories(RESNET, MOBILENET) | ALL_CELLS | downstream


def test_code_of_the_export(edited):
    edited.append("scripts/perseus/models/onnx_export.py", CODE)
    assert edited.stale() == set(edited.jobs())


def test_code_of_the_tables(edited, priced_jobs):
    edited.append("scripts/perseus/results/savings.py", CODE)
    assert edited.stale() == priced_jobs


def test_code_of_the_check_of_the_tables(edited):
    edited.append("scripts/perseus/results/between_tables.py", CODE)
    assert edited.stale() == {("check_tables",), ("report",)}


def test_code_of_the_figures(edited, figures):
    edited.append("scripts/perseus/report/style.py", CODE)
    assert edited.stale() == figures


def test_what_a_figure_and_a_table_say_for_the_page(edited, priced_jobs):
    edited.append("scripts/perseus/report/figures/peaks.py", CODE)
    assert edited.stale() == {("figure", "peaks"), ("report",)}
    edited.append("scripts/perseus/results/tables/concurrency.py", CODE)
    assert edited.stale() == priced_jobs


@pytest.mark.parametrize("part", ["page.html", "cells.html", "page.css", "tables.js"])
def test_a_part_of_the_page(edited, part):
    edited.append(f"scripts/perseus/report/templates/{part}", "\n")
    assert edited.stale() == {("report",)}


def test_an_entry_script(edited, priced_jobs):
    edited.append("scripts/tables.py", CODE)
    assert edited.stale() == priced_jobs


@pytest.mark.parametrize("package", ["nvidia-pytriton", "tritonclient", "grpcio", "hpack"])
def test_an_upgrade_of_what_serves_or_asks(edited, downstream, package):
    edited.upgrade(package)
    assert edited.stale() == ALL_CELLS | {CEILING} | downstream


@pytest.mark.parametrize("package", ["onnxruntime", "torch"])
def test_an_upgrade_of_what_exports(edited, package):
    """After an upgrade of a package that exports models, all jobs run again."""
    edited.upgrade(package)
    assert edited.stale() == set(edited.jobs())


def test_an_upgrade_of_what_reads_the_images_of_a_model(edited, downstream):
    edited.upgrade("pillow")
    exported = {("export", MOBILENET), *repositories(MOBILENET), CEILING}
    assert edited.stale() == exported | {MOBILENET_PEAK, MIX} | downstream


def test_an_upgrade_of_what_measures_nothing_here(edited):
    for package in ("openvino", "aiohttp", "pandas"):
        edited.upgrade(package)
    assert edited.stale() == set()


def test_an_image_that_is_built_anew(edited, downstream):
    image = edited.root / "triton.sif"
    image.write_bytes(b"image")
    server = {"launcher": "apptainer", "image": "triton.sif"}
    reconfigured(edited, lambda study: study["servers"][0].update(server))
    edited.accept()
    image.touch()
    assert edited.stale() == set()
    image.write_bytes(b"built anew")
    os.utime(image, (1, 1))
    assert edited.stale() == ALL_CELLS | downstream


MEASURED = {"cell": {"server": {"image": "triton:1"}}}


def fake_docker(edited, monkeypatch):
    (edited.root / "images").write_text("triton:1")
    install(edited.root, "docker")
    monkeypatch.setenv("FAKE_ENGINE", str(edited.root))
    monkeypatch.setenv("PATH", str(edited.root), prepend=os.pathsep)


def test_a_tag_that_is_given_to_another_image(edited, monkeypatch):
    """If the tag of a container image names another image now, Perseus measures the cell again."""
    docker = {"launcher": "docker", "image": "triton:1"}
    reconfigured(edited, lambda study: study["servers"][0].update(docker))
    edited.accept()
    fake_docker(edited, monkeypatch)
    record = edited.root / "results/edits/raw" / MIX[1] / "record.json"
    record.write_text(json.dumps(MEASURED | {"image_id": image_id("triton:1")}))
    edited.accept()
    assert edited.stale() == set()
    record.write_text(json.dumps(MEASURED | {"image_id": "sha256:before"}))
    code, output, errors = edited.plan()
    assert (
        code == 0
        and f"{record.relative_to(edited.root)}: Snakemake measures this cell again" in errors
    )
    assert re.search(r"^measure +1$", output, re.MULTILINE)


def plans_in_containers(edited):
    """Serve the TensorRT plans of both models in containers, and make all results."""
    price = {"instance": "n1-standard-1", "region": "us-central1", "accelerator": "T4"}
    server = {"device": "gpu", "gpus": [0], "launcher": "docker", "runtime": "tensorrt"}
    server |= {"price": price, "image": "triton:1"}
    reconfigured(edited, lambda study: study.update(scenarios=ALONE))
    reconfigured(edited, lambda study: study["servers"][0].update(server))
    edited.run("--cores", "2", "--no-hooks", "all")  # the hooks would look for GPUs
    assert edited.stale() == set()


def test_a_plan_is_built_anew_for_another_image(edited):
    """The image that serves a TensorRT plan also builds it, so another image needs a new plan."""
    plans_in_containers(edited)
    reconfigured(edited, lambda study: study["servers"][0].update(image="triton:2"))
    jobs = edited.jobs()
    assert ("tensorrt", "cpu1", RESNET) in jobs
    exports = {job for job in jobs if job[0] == "export"}
    assert edited.stale() == set(jobs) - exports - {CEILING}


@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_tag_that_is_given_to_another_image_needs_a_new_plan(edited, monkeypatch, rebuilt):
    """A plan that an interrupted run has already rebuilt is newer than the old measurement."""
    plans_in_containers(edited)
    fake_docker(edited, monkeypatch)
    record = edited.root / "results/edits/raw" / RESNET_PEAK[1] / "record.json"
    record.write_text(json.dumps(MEASURED | {"image_id": "sha256:before"}))
    if rebuilt:
        (edited.root / "results/edits/plans/cpu1" / RESNET / "model.plan").touch()
    _, output, _ = edited.plan(f"results/edits/raw/{RESNET_PEAK[1]}")
    assert re.search(r"^measure +1$", output, re.MULTILINE)
    assert bool(re.search(r"^tensorrt +1$", output, re.MULTILINE)) != rebuilt


def test_a_tag_that_is_given_to_another_image_needs_new_plans_of_unmeasured_cells(
    edited, monkeypatch
):
    plans_in_containers(edited)
    fake_docker(edited, monkeypatch)
    raw = edited.root / "results/edits/raw"
    record = raw / RESNET_PEAK[1] / "record.json"
    record.write_text(json.dumps(MEASURED | {"image_id": "sha256:before"}))
    shutil.rmtree(raw / MOBILENET_PEAK[1])
    _, output, _ = edited.plan(
        *(f"results/edits/raw/{cell[1]}" for cell in (RESNET_PEAK, MOBILENET_PEAK))
    )
    assert re.search(r"^tensorrt +2$", output, re.MULTILINE)


def test_an_image_file_with_an_old_time_stamp_needs_new_plans(edited):
    plans_in_containers(edited)
    image = edited.root / "triton.sif"
    image.write_bytes(b"image")
    server = {"launcher": "apptainer", "image": "triton.sif"}
    reconfigured(edited, lambda study: study["servers"][0].update(server))
    edited.run("--cores", "2", "--no-hooks", "all")
    image.write_bytes(b"built anew")
    os.utime(image, (1, 1))
    assert ("tensorrt", "cpu1", RESNET) in edited.stale()


def test_a_lost_figure_is_drawn_again(edited):
    (edited.root / "results" / "edits" / "figures" / "peaks.png").unlink()
    assert edited.stale() == {("figure", "peaks"), ("report",)}
