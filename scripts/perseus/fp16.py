"""An exported ONNX file in fp16: what TensorRT from 11 on, which takes the precision from the
network, and ONNX Runtime on a GPU compute in half precision from.

Inputs and outputs stay fp32, so that clients and checks are those of the fp32 file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from perseus.answers import TOLERANCES
from perseus.export import check_onnx, sha256
from perseus.files import whole
from perseus.networks import ExportError


def convert(onnx_path: Path, reference_path: Path, fp16_path: Path) -> dict[str, Any]:
    """Write `fp16_path`; return the comparison with torch's answers, as plain builtins.

    Raises ExportError when the file cannot be converted, or answers otherwise than rounding to fp16
    explains (under onnxruntime on the CPU).
    """
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    with np.load(reference_path) as arrays:
        images, expected = arrays["input"], arrays["output"]
    try:
        model = convert_float_to_float16(onnx.load(str(onnx_path)), keep_io_types=True)
        OnnxModel(model).topological_sort()  # its casts of the inputs stand last otherwise
        onnx.checker.check_model(model)
    except Exception as error:  # the converter raises many kinds
        raise ExportError(f"{onnx_path} cannot be converted to fp16: {error}") from error
    with whole(fp16_path) as partial:
        onnx.save_model(model, str(partial))
        check = check_onnx(
            partial, images, expected, what="the network in fp16", tolerance=TOLERANCES["fp16"]
        )
        return {**check, "sha256": sha256(partial), "from_sha256": sha256(onnx_path)}
