"""The backends of Perseus return every type and shape bit by bit as the client sends it.

Triton's Python stub was built with NumPy 1. Under NumPy 2, the conversions of the stub lose the
values, and the server nevertheless counts a success.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
import torch
from google.protobuf import text_format
from numpy.typing import NDArray
from onnx import helper
from tritonclient.grpc import InferenceServerClient, InferInput
from tritonclient.grpc import model_config_pb2 as pb
from tritonclient.utils import InferenceServerException

from perseus.serving.launchers.embedded import embedded_triton
from perseus.serving.triton_command import BACKENDS

BENCHMARKED = Path(__file__).parents[2] / "benchmarks" / "backends"
CORE = sorted(os.sched_getaffinity(0))[-1:]
# All types of Triton that DLPack and NumPy have, so no strings and no bfloat16.
TYPES = {
    "BOOL": np.bool_,
    **{f"UINT{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
}
VIEWS = {
    "same": "array",
    "transposed": "array.T",
    "stepped": "array[::2]",
    "backwards": "array[:, ::-1]",
    "widened": "array[:, None]",
    "repeated": "np.broadcast_to(array, (2, *array.shape))",
    "column": "array[:, :1]",
    "nothing": "array[:0]",
    "number": "array.sum(dtype=array.dtype).reshape(())",
}
ECHO = f"""
import json
import numpy as np
import triton_python_backend_utils as pb_utils
from perseus_tensors import tensor

class TritonPythonModel:
    def initialize(self, args):
        self.inputs = [each["name"] for each in json.loads(args["model_config"])["input"]]

    def execute(self, requests):
        return [pb_utils.InferenceResponse(list(self.answers(each))) for each in requests]

    def answers(self, request):
        for kind in self.inputs:
            array = np.from_dlpack(pb_utils.get_input_tensor_by_name(request, kind))
            views = {{{", ".join(f'"{name}": {view}' for name, view in VIEWS.items())}}}
            for name, view in views.items():
                yield tensor(f"{{name}} {{kind}}", view)
"""


def write(
    root: Path,
    name: str,
    backend: str,
    kinds: Sequence[str],
    outputs: Sequence[str] = (),
    *,
    batch: int = 0,
    dims: Sequence[int] = (-1, -1),
    file: str = "",
    **parameters: str,
) -> Path:
    """Write a Triton model with an input of each type, and return the folder of its version.

    For each input, the model has one output per name in `outputs`, or one output named "output".
    """
    config = pb.ModelConfig(name=name, backend=backend, max_batch_size=batch)
    config.default_model_filename = file
    for kind in kinds:
        data_type = pb.DataType.Value(f"TYPE_{kind}")
        config.input.add(name=kind if outputs else "input", data_type=data_type, dims=dims)
        for output in [f"{each} {kind}" for each in outputs] or ["output"]:
            config.output.add(name=output, data_type=data_type, dims=dims)
    config.instance_group.add(count=1, kind=pb.ModelInstanceGroup.KIND_CPU)
    for key, value in parameters.items():
        config.parameters[key].string_value = value
    version = root / name / "1"
    version.mkdir(parents=True)
    (root / name / "config.pbtxt").write_text(text_format.MessageToString(config))
    return version


def values(kind: str, shape: tuple[int, ...]) -> NDArray:
    """Return values that use all bits, so that a wrong conversion cannot stay unnoticed."""
    random = np.random.default_rng(len(kind))
    if kind == "BOOL":
        return random.integers(0, 2, shape).astype(bool)
    if kind.startswith("FP"):
        return random.normal(size=shape).astype(TYPES[kind])
    limits = np.iinfo(TYPES[kind])
    return random.integers(limits.min, limits.max, shape, TYPES[kind], endpoint=True)


Ask = Callable[[str, dict[str, tuple[str, NDArray]]], dict[str, NDArray]]


def asking(client: InferenceServerClient) -> Ask:
    """Return a function that sends (type, values) per input to a model, and returns responses."""

    def ask(model: str, given: dict[str, tuple[str, NDArray]]) -> dict[str, NDArray]:
        inputs = []
        for name, (kind, array) in given.items():
            inputs.append(InferInput(name, list(array.shape), kind))
            inputs[-1].set_data_from_numpy(array)
        result = client.infer(model, inputs, client_timeout=60)
        return {each.name: result.as_numpy(each.name) for each in result.get_response().outputs}

    return ask


def same(got: NDArray, expected: NDArray) -> bool:
    ours, theirs = ((each.dtype, each.shape) for each in (got, expected))
    return ours == theirs and bool((got == expected).all())


# --- the responses of our backends ----------------------------------------------------------------


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    root = tmp_path_factory.mktemp("echo")
    (root / "backends" / "echo").mkdir(parents=True)
    (root / "backends" / "echo" / "model.py").write_text(ECHO)
    for name, kinds in (("echo", tuple(TYPES)), ("BF16", ["BF16"])):
        write(root / "models", name, "echo", kinds, tuple(VIEWS))
    with (
        embedded_triton(
            root / "models", root / "log", CORE, backends=root / "backends", shm_mib=4
        ) as server,
        InferenceServerClient(server.grpc_address) as client,
    ):
        yield asking(client)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (3, 4), (7, 1), (0, 3), (3, 0)])
def test_arrays_of_any_type_and_shape_arrive(echo: Ask, shape: tuple[int, int]) -> None:
    sent = {kind: values(kind, shape) for kind in TYPES}
    answers = echo("echo", {kind: (kind, array) for kind, array in sent.items()})
    expected = {
        f"{name} {kind}": eval(view, {"array": array, "np": np})
        for kind, array in sent.items()
        for name, view in VIEWS.items()
    }
    assert answers.keys() == expected.keys()
    assert not [name for name in expected if not same(answers[name], expected[name])]


def test_what_cannot_be_exchanged_is_an_error(echo: Ask) -> None:
    with pytest.raises(InferenceServerException, match="Unsupported dtype in DLTensor"):
        echo("BF16", {"BF16": ("BF16", np.ones((1, 2), ml_dtypes.bfloat16))})


# --- each backend ---------------------------------------------------------------------------------


def identity_of_onnx(kind: str, path: Path) -> None:
    """Write a network that returns its input."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(TYPES[kind]))
    given, answer = (
        helper.make_tensor_value_info(name, element, ["batch", "rows", "columns"])
        for name in ("input", "output")
    )
    node = helper.make_node("Identity", ["input"], ["output"])
    opset = helper.make_opsetid("", 17)
    graph = helper.make_graph([node], "identity", [given], [answer])
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), path)


class Identity(torch.nn.Module):
    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return given.clone()


def identity_of_torch(kind: str, path: Path) -> None:
    given = torch.from_numpy(values(kind, (2, 3, 5)))
    program = torch.export.export(
        Identity(), (given,), dynamic_shapes=({0: torch.export.Dim("batch", max=4)},)
    )
    program.example_inputs = None  # torch would pickle the example inputs
    torch.export.save(program, path)


ODD = ((1, 1, 1), (1, 3, 5), (4, 2, 3), (2, 1, 3), (3, 4, 1), (2, 0, 3))
NETWORKS = {
    "onnxruntime": ("model.onnx", identity_of_onnx, ("BOOL", "UINT8", "INT64", "FP64"), ODD),
    # OpenVINO computes 64-bit types in 32 bits.
    "openvino": ("model.onnx", identity_of_onnx, ("BOOL", "UINT8", "INT32", "FP32"), ODD),
    "pytorch": ("model.pt2", identity_of_torch, ("INT64",), ((1, 3, 5), (4, 3, 5))),
}
"""For each runtime: the name of the model file, the function that writes the file, the data types,
and the shapes of the requests."""


@pytest.mark.parametrize("runtime", NETWORKS)
def test_each_runtime_gives_back_what_it_got(runtime: str, tmp_path: Path) -> None:
    file, make, kinds, shapes = NETWORKS[runtime]
    for kind in kinds:
        folder = write(tmp_path / "models", kind, runtime, [kind], batch=4, file=file)
        make(kind, folder / file)
    with (
        embedded_triton(tmp_path / "models", tmp_path / "log", CORE, shm_mib=4) as server,
        InferenceServerClient(server.grpc_address) as client,
    ):
        ask = asking(client)
        for kind, shape in product(kinds, shapes):
            array = values(kind, shape)
            assert same(ask(kind, {"input": (kind, array)})["output"], array), (kind, shape)


def test_what_answers_without_a_network_answers_in_full(tmp_path: Path) -> None:
    write(tmp_path / "models", "null", "null", ["FP32"], batch=4, dims=[2, 3])
    timed = {"service_ms": "0", "stall_every": "0", "stall_ms": "0"}
    write(tmp_path / "models", "sleep", "sleep", ["FP32"], **timed)
    (tmp_path / "backends").mkdir()
    for folder in (BACKENDS / "null", BENCHMARKED / "sleep"):
        (tmp_path / "backends" / folder.name).symlink_to(folder)
    with (
        embedded_triton(
            tmp_path / "models", tmp_path / "log", CORE, backends=tmp_path / "backends"
        ) as server,
        InferenceServerClient(server.grpc_address) as client,
    ):
        ask = asking(client)
        for name, shape in (("null", (1, 2, 3)), ("null", (4, 2, 3)), ("sleep", (1, 1))):
            answer = ask(name, {"input": ("FP32", values("FP32", shape))})["output"]
            assert same(answer, np.zeros(shape, np.float32))
