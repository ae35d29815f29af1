"""Tests that each rule writes a file with the reason in place of a model that Perseus cannot
make."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from references import images_and_scores, write_reference

from perseus.models import onnx_export, onnx_precision
from perseus.models.export_errors import (
    NoModelError,
    export_error,
    export_or_write_error,
    raise_temporary,
    require_model,
)
from perseus.models.networks import ExportError
from perseus.models.repository import write_tenant
from perseus.models.tensors import ModelTensors
from perseus.study.tasks.export import ExportTask
from perseus.study.tasks.repository import RepositoryTask, ServedTenant

SCRIPTS = Path(__file__).parents[3] / "scripts"
CHECK = ModelTensors.of_classifier((3, 224, 224), 10).plain()


def test_what_is_made_stays_what_it_is(tmp_path):
    path = tmp_path / "model.onnx"

    def make():
        path.write_bytes(b"a network")
        return {"sha256": "ab"}

    assert export_or_write_error(make, path, pytest.fail, ExportError) == {"sha256": "ab"}
    assert (path.read_bytes(), export_error(path)) == (b"a network", "")
    require_model(path)


def test_a_refusal_goes_on_in_the_place_of_the_model_to_the_repository(tmp_path):
    path, messages = tmp_path / "model.onnx", []

    def make():
        raise ExportError("it has no range: Größe")

    assert export_or_write_error(make, path, messages.append, ExportError) == {
        "export_error": "it has no range: Größe"
    }
    assert messages == ["it has no range: Größe"]
    tenant = ServedTenant(name="resnet~precision-int8", model="resnet18")
    write_tenant(tmp_path / "repository", tenant, path, CHECK)
    served = tmp_path / "repository/resnet~precision-int8/1/model.onnx"
    assert export_error(served) == "it has no range: Größe"
    with pytest.raises(NoModelError, match=f"^it has no range: Größe .*, remove {served}"):
        require_model(served)


def test_any_other_exception_leaves_no_file(tmp_path):
    def make():
        raise MemoryError

    with pytest.raises(MemoryError):
        export_or_write_error(make, tmp_path / "model.onnx", pytest.fail, ExportError)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (ValueError("no range"), ExportError),
        (MemoryError(), MemoryError),
        (OSError(28, "No space left on device"), OSError),
    ],
    ids=lambda case: getattr(case, "__name__", str(case)),
)
def test_trouble_of_the_machine_is_not_taken_for_the_network_s(
    exported, tmp_path, monkeypatch, raised, seen
):
    def converter(onnx_path, images):
        raise raised

    monkeypatch.setitem(onnx_precision.CONVERTERS, "int8", converter)
    folder, _ = exported
    files = folder / "model.onnx", folder / "reference.npz", tmp_path / "model.onnx"
    with pytest.raises(seen):
        onnx_precision.convert("int8", *files)


def job(script, folder, **of):
    paths = {
        key: SimpleNamespace(**{name: str(folder / path) for name, path in of[key].items()})
        for key in ("input", "output")
        if key in of
    }
    others = {key: SimpleNamespace(**of.get(key, {})) for key in ("params", "wildcards")}
    run(script, folder, **paths, **others)


def run(script, folder, **of):
    snakemake = SimpleNamespace(log=[str(folder / "logs/job.log")], **of)
    runpy.run_path(str(SCRIPTS / f"{script}.py"), {"snakemake": snakemake})


def repository(folder, scenario, model, *tenants):
    """Run the rule `repository` for tenants of one model."""
    given = {"models": model, "checks": "check.json", "references": "reference.npz"}
    run(
        "repository",
        folder,
        input=SimpleNamespace(**{k: [str(folder / v)] * len(tenants) for k, v in given.items()}),
        output=[str(folder / "repository")],
        params=SimpleNamespace(task=RepositoryTask(tenants=tenants).plain()),
        wildcards=SimpleNamespace(scenario=scenario),
    )


def converted(folder):
    """Return what the rule `convert` writes for an invalid network."""
    (folder / "model.onnx").write_bytes(b"no network")
    (folder / "check.json").write_text(json.dumps(CHECK))
    images = np.zeros((2, 3, 8, 8), np.float32)
    write_reference(folder / "reference.npz", images, np.zeros((2, 10), np.float32))
    job(
        "convert",
        folder,
        input={"model": "model.onnx", "reference": "reference.npz"},
        output={"model": "model.int8.onnx", "check": "check.int8.json"},
        wildcards={"precision": "int8"},
    )
    return json.loads((folder / "check.int8.json").read_text())["export_error"]


@pytest.mark.parametrize("scenario", ["cpu1.resnet", "cpu1~runtime-openvino.resnet"])
def test_only_what_a_grid_sets_goes_on_without_a_model(tmp_path, scenario):
    reason = converted(tmp_path)
    assert "model.onnx cannot be converted to int8" in reason
    tenant = ServedTenant(name="resnet", model="resnet18")
    served = "repository/resnet/1/model.onnx"
    if "~" in scenario:
        repository(tmp_path, scenario, "model.int8.onnx", tenant)
        assert export_error(tmp_path / served) == reason
        return
    with pytest.raises(SystemExit, match="cannot be converted to int8"):
        repository(tmp_path, scenario, "model.int8.onnx", tenant)
    assert not (tmp_path / served).exists()
    assert "cannot be converted" in (tmp_path / "logs/job.error").read_text()


NO_BATCHES = replace(ModelTensors.of_classifier((4, 3, 224, 224), 10), has_batches=False).plain()


@pytest.mark.parametrize(
    ("scenario", "asked", "why"),
    [
        ("cpu1.own", {}, ""),
        ("cpu1.own", {"request_batch_size": 4, "max_batch_size": 4}, ""),
        ("cpu1.own", {"request_batch_size": 2}, "does not support batches: leave dyn"),
        (
            "cpu1.own",
            {"max_queue_delay_us": 0},
            "or set request_batch_size: 4, the model's fixed batch size",
        ),
        ("cpu1~batch-8.own", {"max_queue_delay_us": 0}, "does not support batches: leave"),
    ],
)
def test_a_network_without_batches_is_served_as_it_is(tmp_path, scenario, asked, why):
    (tmp_path / "model.onnx").write_bytes(b"a network")
    (tmp_path / "check.json").write_text(json.dumps(NO_BATCHES))
    (tmp_path / "reference.npz").write_bytes(b"answers")
    tenant = ServedTenant(name="own", model="mine", **asked)
    fit = ServedTenant(name="fit", model="mine")
    served = tmp_path / "repository/own/1/model.onnx"
    if why and "~" not in scenario:
        with pytest.raises(SystemExit, match=why):
            repository(tmp_path, scenario, "model.onnx", tenant, fit)
        assert not served.exists()
    else:
        repository(tmp_path, scenario, "model.onnx", tenant, fit)
        assert why in export_error(served) and bool(why) == bool(export_error(served))
        assert (tmp_path / "repository/fit/1/model.onnx").read_bytes() == b"a network"


def test_a_surveyed_network_that_cannot_be_exported_says_why_and_has_torchs_answers(
    tmp_path, monkeypatch
):
    def refuse(*_args, **_keys):
        raise ExportError("no operator for it")

    monkeypatch.setattr(onnx_export, "write_onnx", refuse)
    task = ExportTask(architecture="squeezenet1_1", input_size=64, is_surveyed=True)
    onnx, reference, messages = tmp_path / "model.onnx", tmp_path / "reference.npz", []
    check = onnx_export.surveyed_export(messages.append, task, onnx, reference)
    assert export_error(onnx) == check["export_error"] == messages[0] == "no operator for it"
    assert ModelTensors.of(check) == ModelTensors.of_classifier((3, 64, 64), 1000)
    assert images_and_scores(reference)[1].shape[1] == 1000


def test_a_surveyed_network_that_torch_cannot_run_does_not_stop_the_survey(tmp_path):
    """The best weights of ViT have a fixed input size."""
    task = ExportTask(architecture="vit_b_32", input_size=70, is_surveyed=True)
    onnx, reference, messages = tmp_path / "model.onnx", tmp_path / "reference.npz", []
    check = onnx_export.surveyed_export(messages.append, task, onnx, reference)
    assert "70 x 70 pixels" in export_error(onnx) == messages[0]
    assert ModelTensors.of(check) == ModelTensors.of_classifier((3, 70, 70), 1000)
    assert images_and_scores(reference)[1].shape[1] == 1000


class LibraryError(RuntimeError):
    """An error of torch or ONNX Runtime."""


def caused(cause):
    error = LibraryError("export failed")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (caused(OSError(5, "Input/output error")), OSError),
        (caused(MemoryError()), MemoryError),
        (LibraryError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), MemoryError),
        (caused(LibraryError("Failed to allocate memory for requested buffer")), MemoryError),
    ],
)
def test_an_error_that_a_library_wraps_is_seen_as_the_machine_s(error, seen):
    with pytest.raises(seen):
        raise_temporary(error)
    raise_temporary(caused(ValueError("no such operator")))


def test_weights_beyond_what_a_file_holds_are_told_before_the_export(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_export, "LARGEST_BYTES", 10**6)
    task = ExportTask(architecture="squeezenet1_1", input_size=64)
    with pytest.raises(ExportError, match=r"weights of the network have 0\.0 GB, but an ONNX file"):
        onnx_export.export_model(task, tmp_path / "model.onnx", tmp_path / "reference.npz")
