"""Convert an exported ONNX file to another numeric precision.

The ONNX file determines the numeric precision in TensorRT, in ONNX Runtime on a GPU, and for int8
in OpenVINO. The inputs and outputs of the converted file stay fp32, so clients can send the same
requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perseus.host.files import whole
from perseus.host.orphans import temporary_folder
from perseus.models.answers import TOLERANCES
from perseus.models.export_errors import raise_temporary
from perseus.models.networks import ExportError
from perseus.models.onnx_export import check_onnx, sha256
from perseus.models.reference import Reference
from perseus.models.tensors import Tensor

if TYPE_CHECKING:
    import onnx

QUANTISED = ["Conv", "Gemm", "MatMul"]

OPSET_OF_CHANNELS, IR_VERSION_OF_CHANNELS = 13, 7
"""The oldest opset that supports one quantisation scale per channel, and its IR version.

The opset is the version of the ONNX operators, and the IR version is the version of the format.
"""

Examples = Sequence[Mapping[str, Tensor]]
"""Examples for the calibration of int8. Each example has the inputs of the model by name. If the
model supports batches, each example is a batch of one."""


def convert(
    precision: str,
    onnx_path: Path,
    reference_path: Path,
    converted_path: Path,
) -> dict[str, Any]:
    """Convert an ONNX file to `precision`, and write the result to `converted_path`.

    The function runs the converted file in ONNX Runtime on the CPU. It returns a record with the
    relative error of the responses, and with the hashes of both files.

    Raises ExportError if the file cannot be converted, or if the relative error exceeds the
    tolerance. The tolerance is that of `precision` or that of the original precision, whichever is
    larger.
    """
    import onnx

    reference = Reference.read(reference_path)
    try:
        examples = [reference.given([i]) for i in range(reference.count)]
        model = CONVERTERS[precision](onnx_path, examples)
        onnx.checker.check_model(model)
    except Exception as error:  # the converters raise many kinds of exceptions
        raise_temporary(error)
        raise ExportError(f"{onnx_path} cannot be converted to {precision}: {error}") from error
    with whole(converted_path) as partial:
        onnx.save_model(model, str(partial))
        what = f"the network in {precision}"
        tolerance = max(TOLERANCES[precision], TOLERANCES[reference.precision])
        check = check_onnx(partial, reference, what=what, tolerance=tolerance)
        return {**check, "sha256": sha256(partial), "from_sha256": sha256(onnx_path)}


def _half(onnx_path: Path, examples: Examples) -> onnx.ModelProto:
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    model = convert_float_to_float16(onnx.load(str(onnx_path)), keep_io_types=True)
    OnnxModel(model).topological_sort()  # otherwise, the casts of the inputs come last in the graph
    return model


def _quantised(onnx_path: Path, examples: Examples) -> onnx.ModelProto:
    """Return the network in int8, in the form that TensorRT requires.

    The network contains QuantizeLinear and DequantizeLinear nodes. The quantisation is symmetric,
    and has one scale per channel of the weights. The bias is not quantised. The largest absolute
    value of an activation over all `examples` determines the scale of this activation.
    """
    import onnx
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self._left = iter(examples)

        def get_next(self) -> dict[str, Tensor] | None:
            left = next(self._left, None)
            return None if left is None else dict(left)

    with temporary_folder() as folder:
        model = _with_channels(onnx.load(str(onnx_path)))
        prepared, quantised = folder / "prepared.onnx", folder / "quantised.onnx"
        quant_pre_process(model, str(prepared))
        quantization.quantize_static(
            str(prepared),
            str(quantised),
            Reader(),
            quant_format=quantization.QuantFormat.QDQ,
            # Use weights of 7 bits. A CPU without VNNI adds two products in 16 bits, and with
            # weights of 8 bits, this sum can overflow.
            reduce_range=True,
            op_types_to_quantize=QUANTISED,
            per_channel=True,
            activation_type=quantization.QuantType.QInt8,
            weight_type=quantization.QuantType.QInt8,
            calibrate_method=quantization.CalibrationMethod.MinMax,
            extra_options={
                "ActivationSymmetric": True,
                "WeightSymmetric": True,
                "QuantizeBias": False,  # TensorRT adds the bias in floating point
            },
        )
        return onnx.load(str(quantised))


def _with_channels(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the network in opset OPSET_OF_CHANNELS or later.

    Older opsets do not support one quantisation scale per channel of the weights. Raises
    ExportError if the package onnx cannot convert the network to OPSET_OF_CHANNELS.
    """
    import onnx

    *repeated, standard = (each for each in model.opset_import if each.domain in ("", "ai.onnx"))
    # Keep only the last entry, which ONNX Runtime uses: it quantises no file with two entries.
    for each in repeated:
        model.opset_import.remove(each)
    opset = standard.version
    if opset < OPSET_OF_CHANNELS:
        try:
            model = onnx.version_converter.convert_version(model, OPSET_OF_CHANNELS)
        except Exception as error:  # onnx raises exceptions of C++ without a common base class
            raise ExportError(
                f"its opset is {opset}, and the package onnx cannot convert the network to opset"
                f" {OPSET_OF_CHANNELS} ({error}): export the network with opset"
                f" {OPSET_OF_CHANNELS} or later"
            ) from error
    model.ir_version = max(model.ir_version, IR_VERSION_OF_CHANNELS)
    return model


CONVERTERS: Final[dict[str, Callable[[Path, Examples], onnx.ModelProto]]] = {
    "fp16": _half,
    "int8": _quantised,
}
"""For each numeric precision, the function that converts a network to this precision. Only the
function for int8 uses the examples (for calibration)."""
