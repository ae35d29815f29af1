"""Run ONNX models in ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from perseus.models.export_errors import raise_temporary
from perseus.models.networks import ExportError
from perseus.models.tensors import Tensor

if TYPE_CHECKING:
    import onnxruntime


class OnnxRuntimeError(ExportError):
    """Error: ONNX Runtime cannot load or run a model."""


class OnnxNetwork:
    """An ONNX model, loaded in ONNX Runtime.

    `model` is the path of an ONNX file, or the content of the file. `what` is the name of the model
    in error messages. The attribute `output_shapes` has the shape of each output by name, as ONNX
    Runtime infers it. Raises OnnxRuntimeError if ONNX Runtime cannot load or run the model.
    """

    def __init__(self, model: str | bytes, what: str) -> None:
        self._what = what
        try:
            self._session = onnx_session(model)
            self.output_shapes = {each.name: each.shape for each in self._session.get_outputs()}
        except Exception as error:  # onnxruntime's errors have no base class except Exception
            raise_temporary(error)
            raise OnnxRuntimeError(self._refusal(error)) from error

    def answer(self, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the outputs of the model by name, for the inputs `given`."""
        sent = {name: np.asarray(each) for name, each in given.items()}
        try:
            answers = self._session.run(list(self.output_shapes), sent)
        except Exception as error:
            raise_temporary(error)
            raise OnnxRuntimeError(self._refusal(error)) from error
        return dict(zip(self.output_shapes, map(np.asarray, answers), strict=True))

    def _refusal(self, error: Exception) -> str:
        told = " ".join(str(error).split())
        custom = "is not a registered function/op" in told
        hint = " (Perseus loads no libraries of custom operators)" if custom else ""
        return f"onnxruntime cannot run {self._what}: {told}{hint}"


def onnx_session(model: str | bytes) -> onnxruntime.InferenceSession:
    """Return a session of ONNX Runtime on at most two cores.

    `model` is the path or the content of an ONNX file.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(2, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
