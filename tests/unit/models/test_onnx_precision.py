"""Tests that a network in fp16 or int8 is smaller, with the same interface and similar outputs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from references import images_and_scores, write_reference

from perseus.models import onnx_export
from perseus.models.networks import ExportError
from perseus.models.onnx_export import answered
from perseus.models.onnx_precision import convert
from perseus.models.tensors import ModelTensors
from perseus.models.torch_export import export_program


@pytest.fixture
def network(exported):
    return exported[0]


def test_weights_are_halved_and_the_interface_stays(network, tmp_path):
    made = tmp_path / "model.fp16.onnx"
    check = convert("fp16", network / "model.onnx", network / "reference.npz", made)
    assert 1e-4 < check["relative_error"] < 0.1
    half = with_the_interface_of(network / "model.onnx", made)
    kinds = {each.data_type for each in half.graph.initializer if len(each.dims) > 1}
    assert onnx.TensorProto.FLOAT16 in kinds
    assert onnx.TensorProto.FLOAT not in kinds
    assert made.stat().st_size < 0.6 * (network / "model.onnx").stat().st_size
    assert check["from_sha256"] != check["sha256"]


def with_the_interface_of(before, converted):
    """Return the converted network after a check of its inputs and outputs."""
    old, new = onnx.load(before), onnx.load(converted)
    onnx.checker.check_model(new)
    for ends in ("input", "output"):
        (one,), (other,) = getattr(new.graph, ends), getattr(old.graph, ends)
        assert (one.name, one.type) == (other.name, other.type)
    return new


def test_int8_is_quantised_as_tensorrt_wants_it(network, tmp_path):
    """TensorRT requires zero points of 0, one weight scale per channel, and quantised inputs of
    each convolution."""
    made = tmp_path / "model.int8.onnx"
    check = convert("int8", network / "model.onnx", network / "reference.npz", made)
    assert 0.05 < check["relative_error"] < 3
    graph = with_the_interface_of(network / "model.onnx", made).graph
    values = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}
    convolutions = [node for node in graph.node if node.op_type == "Conv"]
    assert len(convolutions) > 30
    for node in convolutions:
        data, weights = (makers[name] for name in node.input[:2])
        assert data.op_type == weights.op_type == "DequantizeLinear"
        assert values[weights.input[0]].dtype == np.int8
        assert len(values[weights.input[1]]) == len(values[weights.input[0]])
        assert not np.any(values[weights.input[2]]) and not np.any(values[data.input[2]])
        if len(node.input) > 2:
            assert values[node.input[2]].dtype == np.float32
    assert made.stat().st_size < 0.35 * (network / "model.onnx").stat().st_size


def wrong(network, tmp_path):
    images, answers = images_and_scores(network / "reference.npz")
    return write_reference(tmp_path / "wrong.npz", images, np.roll(answers, 1, axis=0))


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_a_file_that_answers_otherwise_is_not_kept(network, tmp_path, precision):
    made = tmp_path / "models" / "model.onnx"
    with pytest.raises(ExportError, match=f"the network in {precision} responds differently after"):
        convert(precision, network / "model.onnx", wrong(network, tmp_path), made)
    assert list(made.parent.iterdir()) == []


def test_a_program_that_answers_otherwise_is_not_kept(export_task, tmp_path, monkeypatch):
    network, images, answers = answered(export_task)
    swapped = (network, images, np.roll(answers, 1, axis=0))
    monkeypatch.setattr("perseus.models.torch_export.answered", lambda _: swapped)
    made = tmp_path / "models" / "model.pt2"
    with pytest.raises(ExportError, match="responds differently after the export by torch"):
        export_program(export_task, made)
    assert list(made.parent.iterdir()) == []


def test_a_reference_without_onnx_is_the_one_beside_it(export_task, network, tmp_path):
    told = onnx_export.write_reference(export_task, tmp_path / "reference.npz")
    assert told == ModelTensors.of_classifier((3, 64, 64), 1000).plain()
    own, other = (images_and_scores(each / "reference.npz") for each in (tmp_path, network))
    np.testing.assert_array_equal(own[0], other[0])
    np.testing.assert_array_equal(own[1], other[1])
