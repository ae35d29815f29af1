"""Tests that Perseus checks the user's files before any job, and reports only the wrong files."""

from __future__ import annotations

import onnx
import pytest
from onnx_files import network
from weights_files import write_shapes

from perseus.models import own_files
from perseus.study.model import Model


@pytest.fixture
def models(tmp_path):
    """Return models with a valid and an invalid file of each kind, and models without a file."""
    write_shapes(tmp_path / "right.pt", "alexnet")
    onnx.save(network(), tmp_path / "right.onnx")
    onnx.save(network(pixels=("h", "w")), tmp_path / "wrong.onnx")
    keys = [
        {"name": "a", "architecture": "alexnet", "weights": f"{tmp_path}/right.pt"},
        {"name": "b", "architecture": "resnet18", "weights": f"{tmp_path}/right.pt"},
        {"name": "c", "onnx": f"{tmp_path}/right.onnx"},
        {"name": "d", "onnx": f"{tmp_path}/wrong.onnx"},
        {"name": "resnet18", "weights": "DEFAULT"},
        {"name": "f", "served_model": "f"},
    ]
    return [Model.model_validate({**each, "sla": {"latency_ms": 9}}) for each in keys]


def test_all_that_is_wrong_is_told(models):
    of_b, of_d = own_files.problems((model, ()) for model in models)
    assert of_b.startswith("models: b: weights: ") and "are not those of resnet18" in of_b
    assert of_d.startswith("models: d: onnx: ")
    assert "'x' FP32 (? x 3 x ? x ?) has variable sizes" in of_d


def test_what_needs_a_package_that_is_not_here_is_left_to_jobs(models, monkeypatch):
    monkeypatch.setattr(own_files, "_is_installed", lambda package: package == "onnx")
    (of_d,) = own_files.problems((model, ()) for model in models)
    assert of_d.startswith("models: d: onnx: ")
