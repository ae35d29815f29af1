"""Triton python-based backend that runs 1/model.onnx with OpenVINO on the CPU.

It serves what NVIDIA's C++ backend of the same name serves, from the same config.pbtxt, and reads
its parameters `INFERENCE_NUM_THREADS` (of all instances together), `NUM_STREAMS` (one per
instance) and `HINT_BF16`. The requests of one call are computed as one batch; a request that is
alone is read where it lies in shared memory.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """One instance of one model: one process, one compiled model with one stream."""

    def initialize(self, args: dict[str, str]) -> None:
        if int(np.__version__.split(".")[0]) >= 2:
            raise pb_utils.TritonModelException(
                f"NumPy {np.__version__} silently corrupts tensors in this server's Python stub: "
                "install 'numpy<2' into the environment that serves"
            )
        config = json.loads(args["model_config"])
        parameters = {k: v["string_value"] for k, v in config.get("parameters", {}).items()}
        streams = int(parameters.get("NUM_STREAMS", 1))
        threads = int(parameters.get("INFERENCE_NUM_THREADS", streams))
        bf16 = parameters.get("HINT_BF16", "").upper() == "YES"
        filename = config.get("default_model_filename") or "model.onnx"
        path = Path(args["model_repository"], args["model_version"], filename)
        self.input = config["input"][0]["name"]
        self.output = config["output"][0]["name"]
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
            inputs = [
                pb_utils.get_input_tensor_by_name(request, self.input).as_numpy()
                for request in requests
            ]
            batch = inputs[0] if len(inputs) == 1 else np.concatenate(inputs)
            results = self.request.infer({self.input: batch}, share_inputs=True, share_outputs=True)
            answers = results[self.output]
        except Exception as failure:
            error = pb_utils.TritonError(f"openvino: {failure}")
            return [pb_utils.InferenceResponse(error=error) for _ in requests]
        responses, start = [], 0
        for each in inputs:
            part = answers[start : start + len(each)]
            start += len(each)
            # Triton copies this view when the call returns, before another one overwrites it.
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor(self.output, part)]))
        return responses

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
