"""Tests of weights beside an ONNX file: Perseus opens only files in the folder of the model."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.external_data_helper import set_external_data
from onnx_files import network

from perseus.models.external_data import external_files, sha256_with_data
from perseus.models.networks import ExportError
from perseus.models.onnx_network import OnnxNetwork
from perseus.models.own_files import problems
from perseus.models.own_onnx import take_onnx
from perseus.models.reference import Reference
from perseus.study.model import Model
from perseus.study.tasks.own_onnx import OwnOnnxTask


def apart(folder, location="own.data"):
    """Return an ONNX file whose weights refer to a file at this location."""
    model = network()
    for weight in model.graph.initializer:
        set_external_data(weight, location)
        weight.ClearField("raw_data")
    (folder / "own.onnx").write_bytes(model.SerializeToString())
    return folder / "own.onnx"


def kept_apart(folder, **how):
    """Return an ONNX file with all weights in own.data, as onnx writes it."""
    how = {"save_as_external_data": True, "location": "own.data", "size_threshold": 0, **how}
    onnx.save(network(), folder / "own.onnx", **how)
    return folder / "own.onnx"


def taken(source, folder):
    return take_onnx(OwnOnnxTask(), source, folder / "model.onnx", folder / "reference.npz")


def test_what_pytorch_writes_today_is_taken_with_its_weights(torch, tmp_path):
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.AdaptiveMaxPool2d(1), torch.nn.Flatten()
    )
    source = tmp_path / "mine" / "mine.onnx"
    source.parent.mkdir()
    torch.onnx.export(net.eval(), (torch.rand(1, 3, 32, 32),), source, dynamo=True, verbose=False)
    assert external_files(source) == [f"{source}.data"]
    taken(source, tmp_path)
    reference = Reference.read(tmp_path / "reference.npz")
    served = OnnxNetwork(str(tmp_path / "model.onnx"), "")  # one file with all weights
    for i, answer in enumerate(reference.answers):
        with torch.no_grad():
            (expected,) = net(torch.from_numpy(reference.given([i])["input"])).numpy()
        (output,) = answer.values()
        np.testing.assert_allclose(output[0], expected, rtol=1e-4, atol=1e-5)
        (output,) = served.answer(reference.given([i])).values()
        np.testing.assert_allclose(output[0], expected, rtol=1e-4, atol=1e-5)


def test_weights_in_many_files_and_folders_are_taken_and_count_in_the_digest(tmp_path):
    (tmp_path / "weights").mkdir()
    model = network()
    for weight in model.graph.initializer:
        (tmp_path / "weights" / weight.name).write_bytes(weight.raw_data)
    for weight in model.graph.initializer:
        set_external_data(weight, f"weights/{weight.name}")
        weight.ClearField("raw_data")
    source = tmp_path / "own.onnx"
    source.write_bytes(model.SerializeToString())
    whole = tmp_path / "whole.onnx"
    onnx.save(network(), whole)
    taken(source, tmp_path)
    apart_from_it = Reference.read(tmp_path / "reference.npz").all_answers("scores")
    taken(whole, tmp_path)
    inside = Reference.read(tmp_path / "reference.npz").all_answers("scores")
    np.testing.assert_array_equal(apart_from_it, inside)
    before = sha256_with_data(source)
    weights = tmp_path / "weights" / "w"
    weights.write_bytes(weights.read_bytes()[::-1])
    assert sha256_with_data(source) != before
    assert sha256_with_data(whole) == taken(whole, tmp_path)["source_sha256"]


def outside(tmp_path):
    return apart(tmp_path, "../secret"), "is not inside the folder of the ONNX file"


def absolute(tmp_path):
    return apart(tmp_path, str(tmp_path.parent / "secret")), "is an absolute path"


def inside_but_absolute(tmp_path):
    (tmp_path / "own.data").touch()
    return apart(tmp_path, str(tmp_path / "own.data")), "is an absolute path"


def by_a_way_outside(tmp_path):
    (tmp_path / "in").mkdir()
    return apart(tmp_path, "in/../../secret"), "is not inside the folder of the ONNX file"


def through_a_link(tmp_path):
    (tmp_path / "own.data").symlink_to(tmp_path.parent / "secret")
    return apart(tmp_path), "is a symbolic link or lies behind one"


def through_a_folder_that_is_a_link(tmp_path):
    (tmp_path / "in").symlink_to(tmp_path.parent)
    return apart(tmp_path, "in/secret"), "is a symbolic link or lies behind one"


def not_there(tmp_path):
    return apart(tmp_path), "does not exist"


def of_no_name(tmp_path):
    return apart(tmp_path, ""), "is not inside the folder of the ONNX file"


@pytest.mark.parametrize(
    "written",
    [
        outside,
        absolute,
        inside_but_absolute,
        by_a_way_outside,
        through_a_link,
        through_a_folder_that_is_a_link,
        not_there,
        of_no_name,
    ],
)
def test_weights_elsewhere_are_refused_before_any_job_and_never_opened(
    tmp_path, monkeypatch, written
):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    source, why = written(folder)
    monkeypatch.setattr("onnx.external_data_helper.load_external_data_for_model", pytest.fail)
    assert external_files(source) == []
    keys = {"name": "own", "onnx": str(source), "sla": {"latency_ms": 9}}
    (message,) = problems([(Model.model_validate(keys), ())])
    todo = "copy this file" if why == "does not exist" else "write the weights into"
    assert message.startswith("models: own: onnx: ") and f", which {why}: {todo}" in message
    with pytest.raises(ExportError, match=why):
        taken(source, tmp_path)
    assert not (tmp_path / "model.onnx").exists()


def test_weights_that_have_lost_their_end_are_told(tmp_path):
    source, data = kept_apart(tmp_path), tmp_path / "own.data"
    data.write_bytes(data.read_bytes()[:-8])
    with pytest.raises(ExportError, match=r"external weights cannot be read: .*length"):
        taken(source, tmp_path)


def test_more_than_a_file_holds_is_told(tmp_path):
    source = kept_apart(tmp_path)
    with (tmp_path / "own.data").open("ab") as data:
        data.truncate(3 << 30)  # a sparse file
    with pytest.raises(
        ExportError, match=r"its files of external weights have 3\.2 GB .* at most 2\.1 GB"
    ):
        taken(source, tmp_path)


def test_constants_in_functions_and_branches_are_found(tmp_path):
    constant = helper.make_node(
        "Constant", [], ["c"], value=numpy_helper.from_array(np.float32([1]), "v")
    )
    set_external_data(constant.attribute[0].t, "../secret")
    made = helper.make_tensor_value_info("c", onnx.TensorProto.FLOAT, [1])
    branch = helper.make_graph([constant], "branch", [], [made])
    chosen = helper.make_node("If", ["which"], ["y"], then_branch=branch, else_branch=branch)
    opset = helper.make_opsetid("", 17)
    model = network()
    model.functions.append(
        helper.make_function("of.mine", "choose", ["which"], ["y"], [chosen], [opset])
    )
    (tmp_path / "own.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ExportError, match=r"'\.\./secret', which is not inside the folder"):
        taken(tmp_path / "own.onnx", tmp_path)
