"""A user's own ONNX file: what is taken, what it becomes, and what is refused with which words."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_files import CLASSES, network

from perseus.models.networks import ExportError
from perseus.models.onnx_export import onnx_session
from perseus.models.onnx_precision import convert
from perseus.models.own_onnx import require_classifier, take_onnx
from perseus.study.image_files import MIN_IMAGES
from perseus.study.tasks.own_onnx import OwnOnnxTask


def taken(model, folder, **task):
    """The record, and the file that is served, of a model in a file of its own."""
    onnx.save(model, folder / "own.onnx")
    served = folder / "model.onnx"
    record = take_onnx(OwnOnnxTask(**task), folder / "own.onnx", served, folder / "reference.npz")
    return record, served


def unknown():
    """A network that declares no shape, by an operator whose answers have any."""
    model = network(declared=None)
    model.graph.node[-1].domain = "of.somebody"
    return model


def of_unknown_type():
    """As of an onnx that is newer than ours."""
    model = network()
    model.graph.input[0].type.tensor_type.elem_type = 77
    return model


def branching():
    """A network whose product stands in branches of branches, under names that are ours.

    They read a weight from outside, and one that is their own.
    """
    model = network()
    (place,) = (at for at, node in enumerate(model.graph.node) if node.op_type == "MatMul")
    inner = numpy_helper.from_array(numpy_helper.to_array(model.graph.initializer[0]), "output")
    outside = branch("outside", helper.make_node("MatMul", ["flat", "w"], ["outside"]))
    inside = branch("inside", helper.make_node("MatMul", ["flat", "output"], ["inside"]), inner)
    chosen = {"then_branch": inside, "else_branch": outside}
    both = branch("both", helper.make_node("If", ["which"], ["both"], **chosen))
    chosen = {"then_branch": both, "else_branch": outside}
    model.graph.node[place].CopyFrom(helper.make_node("If", ["which"], ["input"], **chosen))
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "which"))
    return model


def branch(name, node, *weights):
    made = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", CLASSES])
    return helper.make_graph([node], name, [], [made], weights)


@pytest.mark.parametrize("batch", ["n", -1, 1, 3])
def test_it_is_served_under_our_names_in_any_batch_with_its_own_answers(tmp_path, batch):
    record, served = taken(network(batch), tmp_path)
    assert record["fixed_batch"] is None
    assert record["input_shape"] == [3, 32, 32] and record["classes"] == CLASSES
    session = onnx_session(str(served))
    (given,), (made,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.shape) == ("input", ["batch", 3, 32, 32])
    assert (made.name, made.shape) == ("output", ["batch", CLASSES])
    reference = np.load(tmp_path / "reference.npz")
    (answers,) = session.run(None, {"input": reference["input"][:2]})
    np.testing.assert_allclose(answers, reference["output"][:2], rtol=1e-5)
    model = onnx.load(tmp_path / "own.onnx")
    (weight,) = (each for each in model.graph.initializer if each.name == "w")
    pooled = reference["input"].max(axis=(2, 3))
    expected = pooled @ numpy_helper.to_array(weight)
    np.testing.assert_allclose(reference["output"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_batch_that_stays_fixed_is_recorded(tmp_path, batch):
    record, _ = taken(network(batch, by=batch), tmp_path)
    assert record["fixed_batch"] == batch
    assert set(record["batches"]) == {batch}


ENDS_IN_ONES = [
    network(ones=2, declared=(CLASSES, 1, 1)),  # as public SqueezeNets and DenseNets do
    network(1, ones=2, declared=(CLASSES, 1, 1)),
    network(ones=1, declared=(CLASSES, "h")),  # what is open there can be inferred
]


@pytest.mark.parametrize("model", [*ENDS_IN_ONES, network(declared=None)])
def test_an_answer_that_ends_in_sizes_of_one_or_declares_none_is_served_flat(tmp_path, model):
    record, served = taken(model, tmp_path)
    assert record["classes"] == CLASSES and record["fixed_batch"] is None
    session = onnx_session(str(served))
    assert session.get_outputs()[0].shape == ["batch", CLASSES]
    reference = np.load(tmp_path / "reference.npz")
    (answers,) = session.run(["output"], {"input": reference["input"][:2]})
    np.testing.assert_allclose(answers, reference["output"][:2], rtol=1e-5)


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_such_a_file_is_converted_with_its_batch(tmp_path, precision):
    record, served = taken(network(3, by=3), tmp_path)
    files = served, tmp_path / "reference.npz", tmp_path / f"model.{precision}.onnx"
    converted = convert(precision, *files, record["batches"])
    assert set(converted["batches"]) == {3}


@pytest.mark.parametrize("open_sizes", [("h", "w"), (-1, -1)])
def test_an_open_size_is_the_one_that_is_asked_for(tmp_path, open_sizes):
    record, _ = taken(network(pixels=open_sizes), tmp_path, input_size=48)
    assert record["input_shape"] == [3, 48, 48]


def of_old(opset, ir_version):
    """A network as files of those years are: before IR version 4 all weights are inputs, too."""
    model = network()
    model.graph.node[-1].CopyFrom(helper.make_node("Identity", ["input"], ["scores"]))
    model.opset_import[0].version, model.ir_version = opset, ir_version
    if ir_version < 4:
        model.graph.input.extend(
            helper.make_tensor_value_info(each.name, each.data_type, each.dims)
            for each in model.graph.initializer
        )
    return model


@pytest.mark.parametrize(("opset", "ir_version"), [(7, 3), (9, 4), (11, 6), (17, 3)])
def test_a_file_of_an_old_opset_is_quantised_by_channel(tmp_path, opset, ir_version):
    record, served = taken(of_old(opset, ir_version), tmp_path)
    quantised = tmp_path / "model.int8.onnx"
    convert("int8", served, tmp_path / "reference.npz", quantised, record["batches"])
    weights = {each.name: each for each in onnx.load(quantised).graph.initializer}
    assert weights["w_quantized"].data_type == TensorProto.INT8
    assert list(weights["w_scale"].dims) == [CLASSES]


def test_an_opset_that_cannot_be_converted_is_refused_with_what_to_do(tmp_path, monkeypatch):
    def refuse(*_):
        raise RuntimeError("no adapter")

    record, served = taken(of_old(11, 6), tmp_path)
    monkeypatch.setattr(onnx.version_converter, "convert_version", refuse)
    with pytest.raises(ExportError, match=r"to int8: its opset is 11, .* with opset 13 or later"):
        convert("int8", served, tmp_path / "reference.npz", tmp_path / "q", record["batches"])


def test_what_branches_read_from_outside_keeps_one_name(tmp_path):
    record, served = taken(branching(), tmp_path)
    assert record["fixed_batch"] is None and record["cost"]["weight_bytes"] > 2 * 4 * 3 * CLASSES
    reference = np.load(tmp_path / "reference.npz")
    (answers,) = onnx_session(str(served)).run(None, {"input": reference["input"]})
    np.testing.assert_allclose(answers, reference["output"], rtol=1e-5)
    # And once more, of a file that has our names and those that stand in for them.
    again = taken(onnx.load(served), tmp_path)[0]
    assert again["classes"] == CLASSES and again["fixed_batch"] is None


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (network(more_inputs=("a",)), r"has 2 inputs \('x', 'a'\), not one: .* served_model:"),
        (network(more_outputs=("boxes",)), r"has 2 outputs \('scores', 'boxes'\), not one"),
        (network(more_inputs=("\x1b[31m",)), r"has 2 inputs \('x', '\\x1b\[31m'\), not one"),
        (network(channels=1), r"'x' is float \(\?, 1, 32, 32\); images are float32 \(batch, 3,"),
        (network(kind=TensorProto.FLOAT16), r"'x' is float16 \(\?, 3, 32, 32\); images are"),
        (of_unknown_type(), r"'x' is of type 77 \(\?, 3, 32, 32\); images are"),
        (network(declared=(CLASSES, 2)), r"'scores' is float \(\?, 5, 2\); answers are"),
        (unknown(), "'scores' is float of no declared shape; answers are"),
        (network(pixels=("h", "w")), r"\(\?, 3, \?, \?\): set input_size"),
        (network(pixels=(-1, -1)), r"\(\?, 3, \?, \?\): set input_size"),
        (network(pixels=(32, 64)), "images must be square"),
        (network(pixels=(31, 31)), r"\(\?, 3, 31, 31\): images are of 32 to 1024 pixels each way"),
        (network(pixels=(60000, 60000)), "images are of 32 to 1024 pixels each way"),
    ],
)  # fmt: skip
def test_what_is_no_image_classifier_is_refused_with_the_reason(tmp_path, model, why):
    with pytest.raises(ExportError, match=why):
        taken(model, tmp_path)
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize(
    ("batch", "last"),
    [
        ("n", ("Sub", "input", "mean")),  # alone, an image is its own mean
        (MIN_IMAGES, ("Expand", "mean", "size")),
    ],
)
def test_a_file_that_mixes_the_images_of_a_batch_is_refused_for_that(tmp_path, batch, last):
    model = network(batch)
    model.graph.node.pop()
    model.graph.node.extend(
        [
            helper.make_node("ReduceMean", ["input"], ["mean"], axes=[0]),
            helper.make_node("Shape", ["input"], ["size"]),
            helper.make_node(last[0], last[1:], ["scores"]),
        ]
    )
    with pytest.raises(ExportError, match="answers an image otherwise when it is in a batch with"):
        taken(model, tmp_path)
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("times", [0, np.nan])
def test_a_file_that_answers_all_alike_is_refused_for_that(tmp_path, times):
    model = network()
    model.graph.node[-1].CopyFrom(helper.make_node("Mul", ["input", "times"], ["scores"]))
    model.graph.initializer.append(numpy_helper.from_array(np.float32([times]), "times"))
    with pytest.raises(ExportError, match="nearly the same answer for every image"):
        taken(model, tmp_path)


def test_another_size_than_the_files_own_is_refused(tmp_path):
    with pytest.raises(ExportError, match="images must be square, and of input_size"):
        taken(network(), tmp_path, input_size=48)


@pytest.mark.parametrize("name", ["own.json", "own.prototxt", "own.onnxtxt"])
def test_a_file_is_what_it_holds_whatever_its_name(tmp_path, name):
    (tmp_path / name).write_bytes(network().SerializeToString())
    require_classifier(tmp_path / name, None)
    (tmp_path / name).write_text('layer { type: "Convolution" }')
    with pytest.raises(ExportError, match=rf"{name} is not an ONNX file"):
        require_classifier(tmp_path / name, None)


def test_a_file_that_cannot_be_read_is_refused_for_that(tmp_path):
    (tmp_path / "own.onnx").mkdir()
    with pytest.raises(ExportError, match=r"own\.onnx cannot be read: Is a directory"):
        require_classifier(tmp_path / "own.onnx", None)


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x07"])
def test_a_file_that_is_no_onnx_is_refused(tmp_path, content):
    (tmp_path / "own.onnx").write_bytes(content)
    with pytest.raises(ExportError, match="is not an ONNX file"):
        take_onnx(OwnOnnxTask(), tmp_path / "own.onnx", tmp_path / "m", tmp_path / "r")


def test_an_operator_that_onnxruntime_does_not_know_is_its_reason(tmp_path):
    model = network()
    model.graph.node[0].op_type = "Mystery"
    with pytest.raises(ExportError, match=r"onnxruntime cannot run .*Mystery"):
        taken(model, tmp_path)
