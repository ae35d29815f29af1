"""Measure a runtime without a server, by a loop of inferences in one process.

    python -m benchmarks.bare onnxruntime|openvino model.onnx batch seconds

prints images/s. The runtimes have the same options as in the backends of scripts/backends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Infer = Callable[[NDArray[np.float32]], Any]


def onnxruntime_infer(path: Path) -> Infer:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda images: session.run(["output"], {"input": images})


def openvino_infer(path: Path) -> Infer:
    import openvino

    options = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": 1,
        "NUM_STREAMS": 1,
        "ENABLE_CPU_PINNING": False,
    }
    request = openvino.Core().compile_model(str(path), "CPU", options).create_infer_request()
    return lambda images: request.infer({"input": images}, share_inputs=True, share_outputs=True)


INFER = {"onnxruntime": onnxruntime_infer, "openvino": openvino_infer}


def images_per_s(infer: Infer, batch: int, seconds: float) -> float:
    images = np.random.default_rng(0).standard_normal((batch, 3, 224, 224)).astype(np.float32)
    for _ in range(3):  # the first inferences allocate memory
        infer(images)
    count, start_s = 0, time.monotonic()
    while (spent_s := time.monotonic() - start_s) < seconds:
        infer(images)
        count += batch
    return count / spent_s


if __name__ == "__main__":
    runtime, model, batch, seconds = sys.argv[1:]
    print(images_per_s(INFER[runtime](Path(model)), int(batch), float(seconds)))
