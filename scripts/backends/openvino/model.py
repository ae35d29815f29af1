"""Triton backend in Python that runs 1/model.onnx with OpenVINO on the CPU.

The backend reads the same model file and config.pbtxt as NVIDIA's C++ backend `openvino`. It uses
the parameters `INFERENCE_NUM_THREADS` (threads of all model instances together), `NUM_STREAMS`
(number of model instances) and `HINT_BF16` ("YES": compute in bf16). If Triton passes several
requests at once, the backend runs these requests as one batch. The backend does not copy the inputs
of a single request from shared memory.
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
    """One instance of one model: one process with one compiled model and one stream."""

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
                # Without this hint, OpenVINO computes in bf16 on hosts with AMX or AVX512_BF16.
                "INFERENCE_PRECISION_HINT": "bf16" if bf16 else "f32",
                "INFERENCE_NUM_THREADS": max(1, threads // streams),
                "NUM_STREAMS": 1,
                # Perseus has pinned the processes of the server to its cores. Within these cores,
                # OpenVINO could pin several instances to the same core.
                "ENABLE_CPU_PINNING": False,
            },
        )
        self.request = self.compiled.create_infer_request()
        self.batch: dict[str, np.ndarray] | None = None
        self.told = _computed_precision(args["model_name"], self.compiled)

    def execute(self, requests: list[Any]) -> list[Any]:
        try:
            given = [inputs_of(request, self.inputs) for request in requests]
            batch = joined(given)  # must live as long as its views
            # If an output is also an input, the output shares the memory of the batch, so keep the
            # batch. For a single request, Triton keeps the memory.
            self.batch = batch if len(given) > 1 else None
            views = {name: _writable(each) for name, each in batch.items()}
            results = self.request.infer(views, share_inputs=True, share_outputs=True)
            answers = {name: results[i] for i, name in enumerate(self.outputs)}
        except Exception as failure:
            error = pb_utils.TritonError(f"openvino: {failure}")
            return [pb_utils.InferenceResponse(error=error) for _ in requests]
        # The outputs need no copy: Triton copies them before the next call overwrites them.
        return responses(given, answers)

    def finalize(self) -> None:
        self.told = None
        self.batch = None
        self.request = None
        self.compiled = None


def _computed_precision(model: str, compiled: openvino.CompiledModel) -> Any:
    """Create a Triton metric that states the numeric precision of a compiled network.

    If the CPU lacks instructions for the requested precision, OpenVINO computes in another
    precision. Triton removes the metric when Python deletes the returned object.
    """
    precision = compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
    family = pb_utils.MetricFamily(
        name="perseus_computed_precision",
        description="Numeric precision in which the runtime computes the network of a model",
        kind=pb_utils.MetricFamily.GAUGE,
    )
    metric = family.Metric(labels={"model": model, "precision": precision})
    metric.set(1)
    return family, metric


def _writable(array: np.ndarray) -> np.ndarray:
    """Return a writable view of an array. The caller must keep the array while it uses the view.

    The view is necessary because NumPy treats arrays from DLPack as read-only, and OpenVINO would
    copy read-only arrays.
    """
    memory: Any = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    return np.ndarray(array.shape, array.dtype, memory)
