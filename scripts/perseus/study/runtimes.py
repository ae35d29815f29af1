"""Runtimes: backends that execute networks inside Triton, and their requirements.

A new one is an entry here, a module of its name in `models/runtimes` (its parameters in
config.pbtxt), and a folder of its name in `scripts/backends`, if a Python backend serves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

ONNX, PROGRAM, PLAN = "model.onnx", "model.pt2", "model.plan"
"""Kind of the served file: an ONNX file, a program of torch.export, or a TensorRT plan."""


@dataclass(frozen=True)
class Runtime:
    """A backend that executes networks.

    `precisions` are the offered ones, by device. `python_backend` says that scripts/backends has a
    backend of this name, which the embedded server runs. `native_backend` says that NVIDIA's images
    have their own; `platform` is its name, if it differs from the runtime's. `packages` are
    packages whose version changes the Python backend.
    """

    title: str
    model_file: str
    precisions: Mapping[str, tuple[str, ...]]
    python_backend: bool
    native_backend: bool
    platform: str = ""
    packages: tuple[str, ...] = ()

    @property
    def all_precisions(self) -> set[str]:
        """Precisions on any device."""
        return {precision for offered in self.precisions.values() for precision in offered}


RUNTIMES: Final[dict[str, Runtime]] = {
    "onnxruntime": Runtime(
        title="ONNX Runtime",
        model_file=ONNX,
        precisions={"cpu": ("fp32",), "gpu": ("fp32", "fp16")},
        python_backend=True,
        native_backend=True,
        packages=("onnxruntime",),
    ),
    "openvino": Runtime(
        title="OpenVINO",
        model_file=ONNX,
        precisions={"cpu": ("fp32", "bf16", "int8")},
        python_backend=True,
        native_backend=True,
        packages=("openvino",),
    ),
    "pytorch": Runtime(
        title="PyTorch",
        model_file=PROGRAM,
        precisions={"cpu": ("fp32",), "gpu": ("fp32", "fp16")},
        python_backend=True,
        native_backend=False,
        packages=("torch",),
    ),
    "tensorrt": Runtime(
        title="TensorRT",
        model_file=PLAN,
        precisions={"gpu": ("fp32", "fp16", "int8")},
        python_backend=False,
        native_backend=True,
        platform="tensorrt_plan",
    ),
}
"""Runtimes by their name in the configuration."""
