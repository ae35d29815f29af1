"""A network in fp16 has weights of half the size, the same interface, and nearly the answers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from perseus.export import ModelSpec, answered, export_model
from perseus.fp16 import convert
from perseus.networks import ExportError
from perseus.program import export_program, write_reference

SPEC = ModelSpec("mobilenet_v3_small", input_size=64)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    export_model(SPEC, folder / "model.onnx", folder / "reference.npz")
    return folder


def test_weights_are_halved_and_the_interface_stays(exported, tmp_path):
    made = tmp_path / "model.fp16.onnx"
    check = convert(exported / "model.onnx", exported / "reference.npz", made)
    assert 1e-4 < check["relative_error"] < 0.1
    half, full = onnx.load(made), onnx.load(exported / "model.onnx")
    onnx.checker.check_model(half)
    for ends in ("input", "output"):
        (now,), (before,) = getattr(half.graph, ends), getattr(full.graph, ends)
        assert (now.name, now.type) == (before.name, before.type)
    kinds = {each.data_type for each in half.graph.initializer if len(each.dims) > 1}
    assert onnx.TensorProto.FLOAT16 in kinds
    assert onnx.TensorProto.FLOAT not in kinds
    assert made.stat().st_size < 0.6 * (exported / "model.onnx").stat().st_size
    assert check["from_sha256"] != check["sha256"]


def wrong(exported, tmp_path):
    with np.load(exported / "reference.npz") as arrays:
        images, answers = arrays["input"], arrays["output"]
    np.savez(tmp_path / "wrong.npz", input=images, output=np.roll(answers, 1, axis=0))
    return tmp_path / "wrong.npz"


def test_a_file_that_answers_otherwise_is_not_kept(exported, tmp_path):
    made = tmp_path / "models" / "model.fp16.onnx"
    with pytest.raises(ExportError, match="the network in fp16 as exported differs from torch"):
        convert(exported / "model.onnx", wrong(exported, tmp_path), made)
    assert list(made.parent.iterdir()) == []


def test_a_program_that_answers_otherwise_is_not_kept(tmp_path, monkeypatch):
    network, images, answers = answered(SPEC)
    swapped = (network, images, np.roll(answers, 1, axis=0))
    monkeypatch.setattr("perseus.program.answered", lambda _: swapped)
    made = tmp_path / "models" / "model.pt2"
    with pytest.raises(ExportError, match="as exported by torch differs from torch"):
        export_program(SPEC, made)
    assert list(made.parent.iterdir()) == []


def test_a_reference_without_onnx_is_the_one_beside_it(exported, tmp_path):
    told = write_reference(SPEC, tmp_path / "reference.npz")
    assert told == {"input_shape": [3, 64, 64], "classes": 1000}
    with np.load(tmp_path / "reference.npz") as own, np.load(exported / "reference.npz") as other:
        assert all(np.array_equal(own[name], other[name]) for name in ("input", "output"))
