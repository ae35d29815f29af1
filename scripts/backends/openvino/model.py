"""Triton python-based backend that runs 1/model.onnx with OpenVINO on the CPU.

It serves what NVIDIA's C++ backend of the same name serves, from the same config.pbtxt, and reads
its parameters `INFERENCE_NUM_THREADS` (of all instances together), `NUM_STREAMS` (one per
instance) and `HINT_BF16`. The requests of one call are computed as one batch; a request that is
alone is read where it lies in shared memory.
"""

import ctypes
import json
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import triton_python_backend_utils as pb_utils
from perseus_tensors import inputs_of, joined, responses


class TritonPythonModel:
    """One instance of one model: one process, one compiled model with one stream."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        parameters = {k: v["string_value"] for k, v in config.get("parameters", {}).items()}
        streams = int(parameters.get("NUM_STREAMS", 1))
        threads = int(parameters.get("INFERENCE_NUM_THREADS", streams))
        bf16 = parameters.get("HINT_BF16", "").upper() == "YES"
        filename = config.get("default_model_filename") or "model.onnx"
        path = Path(args["model_repository"], args["model_version"], filename)
        self.inputs = [each["name"] for each in config["input"]]
        self.outputs = [each["name"] for each in config["output"]]
        self.compiled = openvino.Core().compile_model(
            str(path),
            "CPU",
            {
                # Without it, hosts with AMX or AVX512_BF16 compute in bf16.
                "INFERENCE_PRECISION_HINT": "bf16" if bf16 else "f32",
                "INFERENCE_NUM_THREADS": max(1, threads // streams),
                "NUM_STREAMS": 1,
                # The server decides where its processes run, and instances must not all choose
                # the same cores.
                "ENABLE_CPU_PINNING": False,
            },
        )
        self.request = self.compiled.create_infer_request()
        self.told = _computed_precision(args["model_name"], self.compiled)

    def execute(self, requests: list[Any]) -> list[Any]:
        try:
            given = [inputs_of(request, self.inputs) for request in requests]
            batch = joined(given)  # lives as long as the views of it
            views = {name: _writable(each) for name, each in batch.items()}
            results = self.request.infer(views, share_inputs=True, share_outputs=True)
            answers = {name: results[i] for i, name in enumerate(self.outputs)}
        except Exception as failure:
            error = pb_utils.TritonError(f"openvino: {failure}")
            return [pb_utils.InferenceResponse(error=error) for _ in requests]
        # Triton copies what they view when the call returns, before another one overwrites it.
        return responses(given, answers)

    def finalize(self) -> None:
        self.told = None
        self.request = None
        self.compiled = None


def _computed_precision(model: str, compiled: openvino.CompiledModel) -> Any:
    """A metric of the server that says which precision a compiled network computes in: OpenVINO
    takes another one than the hint where the CPU lacks the instructions. It lasts as long as what
    is returned."""
    precision = compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
    family = pb_utils.MetricFamily(
        name="perseus_computed_precision",
        description="The numeric precision of a model's network, as its runtime says",
        kind=pb_utils.MetricFamily.GAUGE,
    )
    metric = family.Metric(labels={"model": model, "precision": precision})
    metric.set(1)
    return family, metric


def _writable(array: np.ndarray) -> np.ndarray:
    """A writable view of the memory of an array, which must live longer. NumPy takes arrays from
    DLPack for read-only, and OpenVINO would copy them."""
    memory: Any = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    return np.ndarray(array.shape, array.dtype, memory)
