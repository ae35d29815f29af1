"""Tests of a user's own ONNX file: accepted networks, the served file, and refusals."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_files import (
    CLASSES,
    detector,
    network,
    of_all_types,
    of_scalar,
    recurrent,
    time_first,
    with_nodes,
)
from onnxruntime import quantization
from PIL import Image

from perseus.models.answers import TOLERANCES
from perseus.models.networks import ExportError
from perseus.models.onnx_network import OnnxNetwork, onnx_session
from perseus.models.onnx_precision import convert
from perseus.models.own_inputs import Sizes
from perseus.models.own_onnx import own_problems, take_onnx
from perseus.models.reference import Reference
from perseus.models.repository import model_config
from perseus.models.tensors import ModelTensors, TensorSpec
from perseus.study.tasks.own_examples import OwnExamples
from perseus.study.tasks.own_onnx import OwnOnnxTask
from perseus.study.tasks.repository import ServedTenant

NOISE = OwnExamples()


def taken(model, folder, **task):
    """Return the record and the served file of a model."""
    onnx.save(model, folder / "own.onnx")
    served = folder / "model.onnx"
    record = take_onnx(OwnOnnxTask(**task), folder / "own.onnx", served, folder / "reference.npz")
    return record, served


def branching():
    """Return a network whose matrix product is in nested branches.

    One branch reads a weight from outside, and one branch has its own weight. Some tensors have
    names that Perseus itself uses.
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


def answers_of(served, reference):
    """Return the outputs of a served file for each example of a reference."""
    network = OnnxNetwork(str(served), "the file that is served")
    return [network.answer(reference.given([i])) for i in range(reference.count)]


@pytest.mark.parametrize("batch", ["n", -1, 1, 3])
def test_a_network_is_served_in_any_batch_with_its_own_names_and_answers(tmp_path, batch):
    record, served = taken(network(batch), tmp_path)
    assert ModelTensors.of(record) == ModelTensors(
        (TensorSpec("x", "FP32", (3, 32, 32)),), (TensorSpec("scores", "FP32", (CLASSES,)),)
    )
    assert record["notes"] == []
    session = onnx_session(str(served))
    (given,), (made,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.shape[1:]) == ("x", [3, 32, 32])
    assert (made.name, made.shape[1:]) == ("scores", [CLASSES])
    assert not {given.shape[0], made.shape[0]} & {1, 3}
    reference = Reference.read(tmp_path / "reference.npz")
    answer = session.run(None, reference.given([2, 0, 1]))[0]
    np.testing.assert_allclose(answer, reference.expected([2, 0, 1])["scores"], rtol=1e-5)
    model = onnx.load(tmp_path / "own.onnx")
    (weight,) = (each for each in model.graph.initializer if each.name == "w")
    pooled = reference.inputs["x"].max(axis=(2, 3))
    expected = pooled @ numpy_helper.to_array(weight)
    np.testing.assert_allclose(
        np.stack(reference.all_answers("scores")), expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("batch", [1, 3])
def test_a_file_that_takes_one_batch_alone_is_served_as_it_is(tmp_path, batch):
    record, served = taken(network(batch, by=batch), tmp_path)
    assert ModelTensors.of(record) == ModelTensors(
        (TensorSpec("x", "FP32", (batch, 3, 32, 32)),),
        (TensorSpec("scores", "FP32", (batch, CLASSES)),),
        has_batches=False,
    )
    (note,) = record["notes"]
    assert note.endswith(
        "own.onnx does not support batches, so each request has one example: ONNX Runtime cannot"
        f" run the model with a batch size other than {batch}. To export a PyTorch network with a"
        ' variable batch size, call torch.onnx.export with dynamic_shapes=({0: "batch"},)'
    )
    reference = Reference.read(tmp_path / "reference.npz")
    assert {len(each["scores"]) for each in reference.answers} == {batch}
    for answer, own in zip(answers_of(served, reference), reference.answers, strict=True):
        np.testing.assert_array_equal(answer["scores"], own["scores"])


def mixing(batch, *last):
    """Return a network whose output is each image plus the mean of the batch, or only the mean."""
    return with_nodes(
        network(batch),
        helper.make_node("ReduceMean", ["input"], ["mean"], axes=[0]),
        helper.make_node("Shape", ["input"], ["size"]),
        helper.make_node(last[0], last[1:], ["scores"]),
    )


def joining():
    """Return a detector that, like YOLOX, puts the boxes of all images into one row."""
    model = with_nodes(network(1), helper.make_node("Reshape", ["input", "rows"], ["scores"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array([1, -1, CLASSES]), "rows"))
    model.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 1, CLASSES])
    )
    return model


@pytest.mark.parametrize(
    ("model", "why", "shape"),
    [
        (
            mixing("n", "Add", "input", "mean"),
            "the responses to a batch differ from the responses to single",
            (1, 5),
        ),
        (
            mixing(4, "Expand", "mean", "size"),
            "the responses to a batch differ from the responses to single",
            (4, 5),
        ),
        (
            time_first(),
            r"the first size of its output 'scores' of shape \(5, 1, 1\) is not the",
            (5, 1, 1),
        ),
        (joining(), "the responses to a batch differ from the responses to single", (1, 1, 5)),
    ],
)
def test_what_does_not_answer_in_batches_as_alone_is_served_without(tmp_path, model, why, shape):
    record, served = taken(model, tmp_path)
    tensors = ModelTensors.of(record)
    assert not tensors.has_batches and tensors.outputs[0].dims == shape
    assert re.search(
        f"does not support batches, so each request has one example: {why}", record["notes"][0]
    )
    reference = Reference.read(tmp_path / "reference.npz")
    for answer, own in zip(answers_of(served, reference), reference.answers, strict=True):
        assert own["scores"].shape == shape
        np.testing.assert_array_equal(answer["scores"], own["scores"])
    assert not all(np.array_equal(each["scores"], own["scores"]) for each in reference.answers[:-1])


def test_inputs_and_outputs_of_all_types_and_ranks_keep_their_names(tmp_path):
    record, _ = taken(of_all_types(), tmp_path)
    tensors = ModelTensors.of(record)
    assert tensors == ModelTensors(
        (TensorSpec("gpu_0/data_0", "INT64", (4,)), TensorSpec("mask:0", "BOOL", (4,))),
        (
            TensorSpec("half", "FP16", (4,)),
            TensorSpec("double", "FP64", (4,)),
            TensorSpec("byte", "UINT8", (4,)),
            TensorSpec("class", "INT64", ()),
            TensorSpec("not", "BOOL", (4,)),
        ),
    )
    config = model_config(ServedTenant(name="own", model="own"), tensors)
    assert [each.name for each in config.input] == ["gpu_0/data_0", "mask:0"]
    (of_class,) = (each for each in config.output if each.name == "class")
    # Triton supports no tensor without dimensions except the batch.
    assert (
        list(of_class.dims) == [1] and of_class.HasField("reshape") and not of_class.reshape.shape
    )


def test_inputs_that_have_no_first_size_in_common_make_no_batches(tmp_path):
    record, served = taken(of_scalar(), tmp_path)
    tensors = ModelTensors.of(record)
    assert [each.dims for each in tensors.inputs] == [(1, 3, 32, 32), (1,)]
    assert not tensors.has_batches
    assert model_config(ServedTenant(name="own", model="own"), tensors).max_batch_size == 0
    reference = Reference.read(tmp_path / "reference.npz")
    assert reference.inputs["times"].shape == (4, 1)
    np.testing.assert_array_equal(
        answers_of(served, reference)[1]["scores"], reference.answers[1]["scores"]
    )


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_such_a_file_is_converted_with_its_batch(tmp_path, precision):
    _, served = taken(network(3, by=3), tmp_path)
    files = served, tmp_path / "reference.npz", tmp_path / f"model.{precision}.onnx"
    assert set(convert(precision, *files)["batches"]) == {1}


def test_a_converted_file_has_the_larger_tolerance_of_both_precisions(tmp_path):
    _, served = taken(network(), tmp_path)
    own = replace(Reference.read(tmp_path / "reference.npz"), precision="int8")
    own.write(tmp_path / "int8.npz")
    check = convert("fp16", served, tmp_path / "int8.npz", tmp_path / "model.fp16.onnx")
    assert check["tolerance"] == TOLERANCES["int8"]


OPEN_SIZES = [("h", "w"), (-1, -1)]


@pytest.mark.parametrize("sizes", OPEN_SIZES)
@pytest.mark.parametrize(
    ("asked", "size"),
    [
        ({"input_size": 48}, (48, 48)),
        ({"shape": {"x": (48, 64)}}, (48, 64)),
        ({"shape": {"x": (3, 48, 64)}}, (48, 64)),
        ({"shape": {"x": (1, 3, 48, 64)}}, (48, 64)),
    ],
)
def test_an_open_size_is_the_one_that_is_asked_for(tmp_path, sizes, asked, size):
    record, _ = taken(network(pixels=sizes), tmp_path, **asked)
    assert ModelTensors.of(record).inputs == (TensorSpec("x", "FP32", (3, *size)),)


def with_one_number():
    """Return a network whose only output is one number without dimensions."""
    model = with_nodes(network(1), helper.make_node("ReduceMax", ["input"], ["scores"], keepdims=0))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("scores", TensorProto.FLOAT, []))
    return model


def with_a_constant_number():
    """Return a network with a second output, which is a weight without dimensions."""
    model = network(1)
    model.graph.initializer.append(numpy_helper.from_array(np.array(7, np.float32), "version"))
    model.graph.output.append(helper.make_tensor_value_info("version", TensorProto.FLOAT, []))
    return model


@pytest.mark.parametrize("model", [with_one_number(), with_a_constant_number()])
def test_an_answer_without_dimensions_is_served(tmp_path, model):
    record, _ = taken(model, tmp_path)
    last = model.graph.output[-1].name
    assert ModelTensors.of(record).outputs[-1] == TensorSpec(last, "FP32", (1,))


def test_one_example_is_enough_to_prove_batches(tmp_path):
    np.savez(tmp_path / "one.npz", x=np.ones((1, 3, 32, 32), np.float32))
    record, _ = taken(network(1), tmp_path, examples=OwnExamples(inputs=str(tmp_path / "one.npz")))
    assert ModelTensors.of(record).has_batches and record["batches"] == [1, 2]


def random_network():
    """Return a network with an active dropout."""
    model = with_nodes(network(), helper.make_node("Dropout", ["input", "half", "on"], ["scores"]))
    weights = {"half": np.float32(0.5), "on": np.array(True)}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()
    )
    return model


def test_every_example_is_sent_again_to_find_random_responses(tmp_path, monkeypatch):
    answer, sent = OnnxNetwork.answer, []

    def changes_for_one(self, given):
        sent.append(example := given["x"].tobytes())
        is_second_again = [example] == sent[1:2] and sent.count(example) > 1
        return {name: of + is_second_again for name, of in answer(self, given).items()}

    monkeypatch.setattr(OnnxNetwork, "answer", changes_for_one)
    with pytest.raises(ExportError, match="two responses to the same request differ by"):
        taken(network(), tmp_path)


def test_answers_that_change_from_call_to_call_are_told_apart_from_batches(tmp_path):
    with pytest.raises(
        ExportError, match=r"the same request differ by .* set deterministic: false"
    ):
        taken(random_network(), tmp_path)
    record, _ = taken(random_network(), tmp_path, deterministic=False)
    assert ModelTensors.of(record).has_batches and not record["is_deterministic"]
    assert "the responses to the same request differ, so no check" in record["notes"][0]
    record, _ = taken(network(), tmp_path, deterministic=False)
    assert record["is_deterministic"]


def quantised(tmp_path):
    """Return a dynamically quantised network, whose scales depend on the batch."""
    onnx.save(network(), tmp_path / "plain.onnx")
    quantization.quantize_dynamic(tmp_path / "plain.onnx", tmp_path / "small.onnx")
    return onnx.load(tmp_path / "small.onnx")


def test_a_quantised_network_has_the_tolerance_of_its_arithmetic(tmp_path):
    record, _ = taken(quantised(tmp_path), tmp_path)
    assert record["precision"] == "int8" and record["tolerance"] == TOLERANCES["int8"]
    assert ModelTensors.of(record).has_batches
    assert TOLERANCES["fp32"] < record["relative_error"]


def test_a_detector_that_finds_nothing_is_taken_and_it_is_said(tmp_path):
    record, _ = taken(detector(), tmp_path)
    tensors = ModelTensors.of(record)
    assert tensors.outputs == (TensorSpec("scores", "INT64", (-1, 2)),)
    assert "its output 'scores' is the same for all requests" in record["notes"][1]


def of_old(opset, ir_version):
    """Return a network in an old format. Before IR version 4, all weights are also inputs."""
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
    _, served = taken(of_old(opset, ir_version), tmp_path)
    quantised = tmp_path / "model.int8.onnx"
    convert("int8", served, tmp_path / "reference.npz", quantised)
    weights = {each.name: each for each in onnx.load(quantised).graph.initializer}
    assert weights["w_quantized"].data_type == TensorProto.INT8
    assert list(weights["w_scale"].dims) == [CLASSES]


@pytest.mark.parametrize("opset", [11, 17])
def test_a_file_with_both_names_of_the_standard_domain_is_quantised(tmp_path, opset):
    model = of_old(opset, 6)
    model.opset_import.add(domain="ai.onnx", version=opset)
    _, served = taken(model, tmp_path)
    convert("int8", served, tmp_path / "reference.npz", tmp_path / "model.int8.onnx")


def test_an_opset_that_cannot_be_converted_is_refused_with_what_to_do(tmp_path, monkeypatch):
    def refuse(*_):
        raise RuntimeError("no adapter")

    _, served = taken(of_old(11, 6), tmp_path)
    monkeypatch.setattr(onnx.version_converter, "convert_version", refuse)
    with pytest.raises(ExportError, match=r"to int8: its opset is 11, .* with opset 13 or later"):
        convert("int8", served, tmp_path / "reference.npz", tmp_path / "q")


def test_what_branches_read_is_counted_and_served(tmp_path):
    record, served = taken(branching(), tmp_path)
    assert ModelTensors.of(record).has_batches
    assert record["cost"]["weight_bytes"] > 2 * 4 * 3 * CLASSES
    reference = Reference.read(tmp_path / "reference.npz")
    (answers,) = onnx_session(str(served)).run(None, dict(reference.inputs))
    np.testing.assert_allclose(answers, np.stack(reference.all_answers("scores")), rtol=1e-5)


def of_unknown_type():
    """Return a network with a type that only a newer onnx knows."""
    model = network()
    model.graph.input[0].type.tensor_type.elem_type = 77
    return model


def of_text():
    model = network()
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    return model


def of_sequences():
    model = network()
    kind = helper.make_tensor_sequence_value_info("scores", TensorProto.FLOAT, None)
    model.graph.output[0].CopyFrom(kind)
    return model


def without_outputs():
    model = network()
    del model.graph.output[:]
    return model


def with_an_output_twice():
    model = network()
    model.graph.output.append(model.graph.output[0])
    return model


@pytest.mark.parametrize(
    ("model", "asked", "why"),
    [
        (of_text(), {}, "its input 'x' is of type STRING, but Perseus supports only BOOL, FP16"),
        (of_unknown_type(), {}, "its input 'x' is of type 77, but Perseus supports only BOOL, FP"),
        (
            of_sequences(),
            {},
            "its output 'scores' is of type sequence, but Perseus supports only BOOL, FP16",
        ),
        (without_outputs(), {}, "it has no outputs"),
        (with_an_output_twice(), {}, "2 of its outputs have the name 'scores'"),
        (
            network(pixels=("h", "w")),
            {},
            r"its input 'x' FP32 (? x 3 x ? x ?) has variable sizes: write shape: {x: [h, w]} with",
        ),
        (network(pixels=(-1, 32)), {}, "write shape: {x: [size]} with numbers for these sizes"),
        (network(), {"shape": {"y": (3,)}}, "shape: 'y' is not an input of the file (it has x)"),
        (
            network(),
            {"shape": {"x": (3, 48, 48)}},
            "shape: 'x': the sizes [3, 48, 48] contradict the input of the file, 'x' FP32 (? x 3 x"
            " 32 x 32)",
        ),
        (
            network(),
            {"input_size": 48},
            "input_size: in the inputs 'x' FP32 (? x 3 x 32 x 32), no size after the first can be",
        ),
    ],
)
def test_what_is_wrong_with_tensors_is_told_before_any_of_it_is_run(
    tmp_path, monkeypatch, model, asked, why
):
    monkeypatch.setattr("perseus.models.own_onnx.OnnxNetwork", pytest.fail)
    onnx.save(model, tmp_path / "own.onnx")
    sizes = Sizes(asked.get("shape", {}), asked.get("input_size"))
    (problem,) = own_problems(tmp_path / "own.onnx", sizes, NOISE)
    assert problem.startswith(f"onnx: {tmp_path}/own.onnx: ") and why in problem
    with pytest.raises(ExportError, match=re.escape(why)):
        taken(model, tmp_path, **asked)
    assert not (tmp_path / "model.onnx").exists()


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    onnx.save(network(pixels=("h", "w"), more_inputs=("a",)), tmp_path / "own.onnx")
    sizes = Sizes({"b": (1,), "a": (2, 2)})
    wrong = list(own_problems(tmp_path / "own.onnx", sizes, NOISE))
    assert len(wrong) == 3 and all("\n" not in each for each in wrong)


def test_names_that_yaml_would_split_are_quoted_in_the_line_to_write(tmp_path):
    model = network(pixels=("h", "w"))
    for node in model.graph.node:
        node.input[:] = ["input:0" if name == "x" else name for name in node.input]
    model.graph.input[0].name = "input:0"
    onnx.save(model, tmp_path / "own.onnx")
    (problem,) = own_problems(tmp_path / "own.onnx", Sizes({}), NOISE)
    assert 'write shape: {"input:0": [h, w]} with numbers' in problem


def test_values_that_are_not_finite_are_refused(tmp_path):
    model = network()
    model.graph.node[-1].CopyFrom(helper.make_node("Mul", ["input", "times"], ["scores"]))
    model.graph.initializer.append(numpy_helper.from_array(np.float32([np.nan]), "times"))
    with pytest.raises(ExportError, match="its output 'scores' has values that are not finite"):
        taken(model, tmp_path)


@pytest.mark.parametrize("name", ["own.json", "own.prototxt", "own.onnxtxt"])
def test_a_file_is_what_it_holds_whatever_its_name(tmp_path, name):
    (tmp_path / name).write_bytes(network().SerializeToString())
    list(own_problems(tmp_path / name, Sizes({}), NOISE))
    (tmp_path / name).write_text('layer { type: "Convolution" }')
    with pytest.raises(ExportError, match=rf"{name} is not an ONNX file"):
        list(own_problems(tmp_path / name, Sizes({}), NOISE))


def test_a_file_that_cannot_be_read_is_refused_for_that(tmp_path):
    (tmp_path / "own.onnx").mkdir()
    with pytest.raises(ExportError, match=r"own\.onnx cannot be read: Is a directory"):
        list(own_problems(tmp_path / "own.onnx", Sizes({}), NOISE))


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x07"])
def test_a_file_that_is_no_onnx_is_refused(tmp_path, content):
    (tmp_path / "own.onnx").write_bytes(content)
    with pytest.raises(ExportError, match="is not an ONNX file"):
        take_onnx(OwnOnnxTask(), tmp_path / "own.onnx", tmp_path / "m", tmp_path / "r")


def test_a_damaged_name_is_told_before_any_job(tmp_path):
    content = network().SerializeToString().replace(b"scores", b"sc\xffres")
    (tmp_path / "own.onnx").write_bytes(content)
    with pytest.raises(ExportError, match=r"onnxruntime cannot run .*own\.onnx: 'utf-8' codec"):
        list(own_problems(tmp_path / "own.onnx", Sizes({}), NOISE))


def test_an_operator_that_onnxruntime_does_not_know_is_told_before_any_job(tmp_path):
    model = network()
    model.graph.node[0].op_type = "Mystery"
    onnx.save(model, tmp_path / "own.onnx")
    with pytest.raises(ExportError, match=r"onnxruntime cannot run .*own\.onnx: .*Mystery") as told:
        list(own_problems(tmp_path / "own.onnx", Sizes({}), NOISE))
    assert "\n" not in str(told.value)


def test_inputs_that_leave_sizes_open_are_named_with_one_line_to_write(tmp_path):
    onnx.save(recurrent(state=2), tmp_path / "own.onnx")

    def told(**shape):
        return list(own_problems(tmp_path / "own.onnx", Sizes(shape), NOISE))

    (problem,) = told()
    assert problem.endswith(
        "its inputs 'x' FP32 (? x ?) and 'state' FP32 (2 x ?) have variable sizes: write shape:"
        " {x: [n, width], state: [units]} with numbers for these sizes"
    )
    (problem,) = told(x=(4,), state=(3,))  # neither first dimension (? or 2) is a batch
    assert problem.endswith(
        "its input 'x' FP32 (? x ?) has variable sizes: write shape: {x: [n, width]} with numbers"
        " for these sizes"
    )
    assert told(x=(1, 4), state=(3,)) == []


@pytest.mark.parametrize(
    ("model", "x"), [(recurrent(), (4,)), (recurrent(state=2), (1, 4))], ids=["one", "none"]
)
def test_first_sizes_that_are_open_or_differ_are_no_batch(tmp_path, model, x):
    record, served = taken(model, tmp_path, shape={"x": x, "state": (3,)})
    tensors = ModelTensors.of(record)
    assert not tensors.has_batches and tensors.inputs[0].dims == (1, 4)
    reference = Reference.read(tmp_path / "reference.npz")
    for i, (answer, own) in enumerate(
        zip(answers_of(served, reference), reference.answers, strict=True)
    ):
        np.testing.assert_array_equal(answer["y"], own["y"])
        total = reference.inputs["x"][i] + reference.inputs["state"][i].sum()
        np.testing.assert_allclose(answer["y"], total, rtol=1e-4, atol=1e-6)


def of_one_image(*dims, perm=(0, 1, 2, 3)):
    """Return a network whose input is one image, without a batch dimension."""
    model = network(1)
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, dims))
    model.graph.initializer.append(numpy_helper.from_array(np.array([0]), "first"))
    model.graph.node.insert(0, helper.make_node("Unsqueeze", ["x", "first"], ["one"]))
    model.graph.node.insert(1, helper.make_node("Transpose", ["one"], ["image"], perm=perm))
    model.graph.node[2].input[0] = "image"
    return model


@pytest.mark.parametrize("kind", ["images", "inputs"])
@pytest.mark.parametrize(
    ("model", "size", "dims"),
    [
        (of_one_image(3, "h", "w"), (32, 48), (3, 32, 48)),
        (of_one_image("h", "w", 3, perm=(0, 3, 1, 2)), (32, 48), (32, 48, 3)),
        (of_one_image(3, 32, 32), (3, 32, 32), (3, 32, 32)),
    ],
    ids=["channels first", "channels last", "all sizes"],
)
def test_an_input_of_one_image_needs_no_batch_dimension(tmp_path, kind, model, size, dims):
    if kind == "images":
        files = [str(tmp_path / f"{number}.png") for number in range(4)]
        for number, file in enumerate(files):
            Image.new("RGB", (90, 70), (255, 60 * number, 0)).save(file)
        examples = OwnExamples(images=tuple(files))
    else:
        arrays = np.random.default_rng(0).random((4, *dims), np.float32)
        np.savez(tmp_path / "samples.npz", x=arrays)
        examples = OwnExamples(inputs=str(tmp_path / "samples.npz"))
    onnx.save(model, tmp_path / "own.onnx")
    assert list(own_problems(tmp_path / "own.onnx", Sizes({"x": size}), examples)) == []
    record, _ = taken(model, tmp_path, shape={"x": size}, examples=examples)
    tensors = ModelTensors.of(record)
    assert tensors.inputs == (TensorSpec("x", "FP32", dims),) and not tensors.has_batches
    (note,) = record["notes"]
    assert note.endswith(
        "each request has one example: an example is a whole input, without a batch dimension"
    )
    assert Reference.read(tmp_path / "reference.npz").inputs["x"].shape == (4, *dims)


def test_an_image_needs_a_number_for_each_size_of_its_input(tmp_path):
    onnx.save(of_one_image("h", 32, 3, perm=(0, 3, 1, 2)), tmp_path / "own.onnx")
    images = OwnExamples(images=("photo.png",))
    (problem,) = own_problems(tmp_path / "own.onnx", Sizes({}), images)
    assert "must have three sizes, and either the first or the last must be the number" in problem


def test_sizes_stay_open_in_a_file_that_onnx_runtime_refuses_with_them(tmp_path):
    given = {"x": (1, 4), "state": (3,)}
    record, served = taken(recurrent(state=2, squeezed=True), tmp_path, shape=given)
    assert ModelTensors.of(record).inputs[0].dims == (1, 4)
    (x, _) = onnx_session(str(served)).get_inputs()
    assert not any(isinstance(size, int) for size in x.shape)


def test_a_network_that_noise_does_not_fit_asks_for_examples(tmp_path):
    model = with_nodes(
        network(),
        helper.make_node("ReduceMax", ["input"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["place"], to=TensorProto.INT64),
        helper.make_node("Gather", ["w", "far"], ["row"]),
        helper.make_node("Identity", ["row"], ["scores"]),
    )
    far = numpy_helper.from_array(np.array([99]), "far")
    model.graph.initializer.append(far)
    with pytest.raises(
        ExportError, match=r"sent random values\. .* \(inputs: file\.npz\), or set the range of"
    ):
        taken(model, tmp_path)


def test_a_custom_operator_is_named_as_such(tmp_path):
    model = with_nodes(network(), helper.make_node("Own", ["input"], ["scores"], domain="mine"))
    model.opset_import.append(helper.make_opsetid("mine", 1))
    onnx.save(model, tmp_path / "own.onnx")
    with pytest.raises(ExportError, match=r"mine:Own.*loads no libraries of custom operators\)$"):
        list(own_problems(tmp_path / "own.onnx", Sizes({}), NOISE))
