"""Tests of the backends without a GPU and with files that contain code, with a fake Triton."""

from __future__ import annotations

import importlib.util
import json
import pickle
import sys
import weakref
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

BACKENDS = Path(__file__).parents[2] / "scripts" / "backends"
ON_GPU = {"model_instance_kind": "GPU", "model_instance_device_id": "1"}


TritonModelException = type("TritonModelException", (Exception,), {})


@pytest.fixture
def backend(monkeypatch):
    """Return a function that loads the backend of a runtime."""
    utils = ModuleType("triton_python_backend_utils")
    utils.TritonModelException = TritonModelException
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", utils)
    monkeypatch.delitem(sys.modules, "perseus_tensors", raising=False)
    monkeypatch.syspath_prepend(BACKENDS)

    def load(runtime):
        path = BACKENDS / runtime / "model.py"
        spec = importlib.util.spec_from_file_location(f"backend_{runtime}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_onnxruntime_without_cuda_says_what_to_install(backend):
    module = backend("onnxruntime")
    assert module._providers({"model_instance_kind": "CPU"}) == ["CPUExecutionProvider"]
    with pytest.raises(TritonModelException, match="built without CUDA: install onnxruntime-gpu"):
        module._providers(ON_GPU)


def test_onnxruntime_computes_on_the_gpu_of_its_instance_in_true_fp32(backend, monkeypatch):
    module = backend("onnxruntime")
    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: both)
    (name, options), _ = module._providers(ON_GPU)
    assert (name, options) == ("CUDAExecutionProvider", {"device_id": "1", "use_tf32": "0"})


def test_onnxruntime_that_fell_back_to_the_cpu_does_not_serve(backend):
    class Session:
        def get_providers(self):
            return ["CPUExecutionProvider"]

    module = backend("onnxruntime")
    module._require_first(Session(), ["CPUExecutionProvider"])
    with pytest.raises(TritonModelException, match="would use CPUExecutionProvider instead"):
        module._require_first(Session(), [("CUDAExecutionProvider", {}), "CPUExecutionProvider"])


def test_openvino_keeps_a_batch_until_triton_has_copied_its_outputs(backend, tmp_path, monkeypatch):
    """If an output is also an input, OpenVINO returns the memory of the batch."""
    module = backend("openvino")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 8]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "", [x], [x, y])
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset]), tmp_path / "model.onnx")
    batches = []

    def joined(given):
        batch = {"x": np.concatenate([each["x"] for each in given])}
        batches.append(weakref.ref(batch["x"]))
        return batch

    monkeypatch.setattr(module, "joined", joined)
    monkeypatch.setattr(module, "inputs_of", lambda request, names: request)
    monkeypatch.setattr(module, "responses", lambda given, answers: answers)
    monkeypatch.setattr(module, "_computed_precision", lambda *_: None)
    model = module.TritonPythonModel()
    config = {"input": [{"name": "x"}], "output": [{"name": "x"}, {"name": "y"}]}
    model.initialize(
        {
            "model_config": json.dumps(config),
            "model_name": "m",
            "model_repository": str(tmp_path),
            "model_version": ".",
        }
    )
    answers = model.execute([{"x": np.full((1, 8), value, np.float32)} for value in (1, -2)])
    batch = batches[0]()
    assert batch is not None and np.shares_memory(answers["x"], batch)
    np.testing.assert_array_equal(answers["y"][:, 0], [1, 0])
    model.finalize()


def test_pytorch_without_the_gpu_of_its_instance_says_so(backend):
    module = backend("pytorch")
    assert module._device({"model_instance_kind": "CPU"}).type == "cpu"
    with pytest.raises(TritonModelException, match="this model instance must run on GPU 1"):
        module._device({**ON_GPU, "model_instance_device_id": "1"})


def test_batches_are_filled_up_and_only_their_own_answers_come_back(backend, torch):
    module = backend("pytorch")
    seen: list[int] = []

    def compute(images):
        seen.append(len(images))
        return images.sum(dim=1, keepdim=True)

    run = module._padded(compute, [1, 4, 6], [2], torch.device("cpu"))
    rows = torch.arange(12.0).reshape(6, 2)
    for parts in ([1], [2], [1, 2], [4], [3, 2], [6]):
        inputs = list(rows[: sum(parts)].split(parts))
        with torch.inference_mode():
            answers = run(inputs)
        assert torch.equal(answers, rows[: sum(parts)].sum(dim=1, keepdim=True))
    assert seen == [1, 4, 4, 4, 6, 6]


class Evil:
    def __reduce__(self):
        return Path.touch, (Path("was-run"),)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p/data/weights/model.pt", pickle.dumps(Evil())),
        ("p/data/sample_inputs/model.pt", pickle.dumps(Evil())),
        ("p/data/constants/opaque_obj_0", pickle.dumps(Evil())),
        ("p/data/constants/custom_obj_0", pickle.dumps(Evil())),
        ("p/data/aotinductor/model/x.so", b"code"),
        (
            "p/data/weights/model_weights_config.json",
            json.dumps({"config": {"w": {"path_name": "weight_0", "use_pickle": True}}}).encode(),
        ),
        ("serialized_state_dict.pt", pickle.dumps(Evil())),
    ],
)
def test_a_program_with_a_part_to_unpickle_is_refused_before_it_is_loaded(
    backend, torch, tmp_path, monkeypatch, name, content
):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("model.pt2", "w") as archive:
        archive.writestr(name, content)
    module = backend("pytorch")
    monkeypatch.setattr(torch.export, "load", lambda _: pytest.fail("was loaded"))
    with pytest.raises(TritonModelException, match="PyTorch would unpickle"):
        module.load(Path("model.pt2"))
    assert not Path("was-run").exists()
