"""Triton backend in Python that runs 1/model.onnx with onnxruntime, on the CPU or a GPU.

The backend reads the same model file and config.pbtxt as NVIDIA's C++ backend `onnxruntime`. The
parameter `intra_op_thread_count` is the number of CPU threads of each model instance. If Triton
passes several requests at once, the backend runs these requests as one batch. The backend does not
copy the inputs of a single request from shared memory, but onnxruntime copies inputs that are not
aligned in memory.
"""

import json
from pathlib import Path
from typing import Any

import onnxruntime
import triton_python_backend_utils as pb_utils
from perseus_tensors import inputs_of, joined, responses


class TritonPythonModel:
    """One instance of one model: one process with one session of onnxruntime."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        parameters = {k: v["string_value"] for k, v in config.get("parameters", {}).items()}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(parameters.get("intra_op_thread_count", 1))
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        filename = config.get("default_model_filename") or "model.onnx"
        path = Path(args["model_repository"], args["model_version"], filename)
        self.inputs = [each["name"] for each in config["input"]]
        self.outputs = [each["name"] for each in config["output"]]
        self.session = onnxruntime.InferenceSession(str(path), options, providers=_providers(args))
        _require_first(self.session, _providers(args))

    def execute(self, requests: list[Any]) -> list[Any]:
        try:
            given = [inputs_of(request, self.inputs) for request in requests]
            answers = self.session.run(self.outputs, joined(given))
        except Exception as failure:
            error = pb_utils.TritonError(f"onnxruntime: {failure}")
            return [pb_utils.InferenceResponse(error=error) for _ in requests]
        return responses(given, dict(zip(self.outputs, answers, strict=True)))

    def finalize(self) -> None:
        self.session = None


def _providers(args: dict[str, str]) -> list[Any]:
    """Return the execution providers (devices) of a model instance.

    For an instance on a GPU, the CPU runs the operators for which CUDA has no kernel.
    """
    if args["model_instance_kind"] != "GPU":
        return ["CPUExecutionProvider"]
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        raise pb_utils.TritonModelException(
            f"onnxruntime {onnxruntime.__version__} was built without CUDA: install onnxruntime-gpu"
            " in place of onnxruntime, or set runtime: pytorch"
        )
    # Compute in true fp32: TF32 would round the factors of products to 10 bits.
    cuda = {"device_id": args["model_instance_device_id"], "use_tf32": "0"}
    return [("CUDAExecutionProvider", cuda), "CPUExecutionProvider"]


def _require_first(session: onnxruntime.InferenceSession, wanted: list[Any]) -> None:
    """Raise TritonModelException if onnxruntime uses the CPU instead of the GPU.

    If CUDA's libraries do not load, onnxruntime uses the CPU without an error.
    """
    first = wanted[0] if isinstance(wanted[0], str) else wanted[0][0]
    if session.get_providers()[0] != first:
        raise pb_utils.TritonModelException(
            f"onnxruntime could not use {first} and would use {session.get_providers()[0]} instead:"
            " install the library that the log of the server names"
        )
