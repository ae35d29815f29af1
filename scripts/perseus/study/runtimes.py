"""Define the runtimes (backends that execute networks inside Triton) and what each runtime needs.

To add a runtime, add an entry to `RUNTIMES`. Also add a module with the name of the runtime to the
folder `models/runtimes`; this module writes the parameters of the runtime into config.pbtxt. If the
runtime needs a Python backend, also add a folder with the name of the runtime to
`scripts/backends`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

ONNX, PROGRAM, PLAN = "model.onnx", "model.pt2", "model.plan"
"""Names of the model file in a Triton repository: `ONNX` for an ONNX file, `PROGRAM` for a program
of torch.export, `PLAN` for a TensorRT plan."""


@dataclass(frozen=True)
class Runtime:
    """A runtime: a backend that executes networks.

    `title` is the name of the runtime in texts. `model_file` is the name of the file that the
    runtime loads. `precisions` contains the supported numeric precisions for each device ("cpu",
    "gpu"). `python_backend` is true if scripts/backends has a Python backend for the runtime. The
    embedded server supports only such runtimes. `native_backend` is true if NVIDIA's container
    images contain a backend for the runtime. `platform` is the name of this backend if it differs
    from the name of the runtime; otherwise, `platform` is empty. `packages` are the Python packages
    whose versions affect the Python backend.
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
        """Numeric precisions that the runtime supports on at least one device."""
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
