#!/usr/bin/env bash
# OpenVINO 2026.4.1 returns an output of type bfloat16 as an array of type float16 with other numbers.
#
# Expected: The array has the numbers of the output, in float32 or in the type bfloat16 of ml_dtypes, as in onnx.
# Behaviour: NumPy has no bfloat16, so OpenVINO declares the 16 bits of each number as float16. The output 3 becomes
#   2.125, and 1000 becomes 4.477. No warning appears, and the numbers are plausible. Read the bits by
#   `array.view(ml_dtypes.bfloat16)`, or let the network end with a Cast to float32.
# Output, Debian 12, Python 3.11:
#   1 2 3 1000 as bfloat16: OpenVINO float16 1.875 2 2.125 4.477, onnx bfloat16 1 2 3 1000; bits as bfloat16: 1 2 3 1000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 ml-dtypes==0.5.4 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOS'
import ml_dtypes, numpy as np, onnx, openvino as ov
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

graph = helper.make_graph(
    [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)], "cast",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
    [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, [4])],
)
model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
onnx.save(model, "cast.onnx")
numbers = np.array([1, 2, 3, 1000], np.float32)
(by_onnx,) = ReferenceEvaluator(model).run(None, {"x": numbers})
by_openvino = ov.compile_model("cast.onnx", "CPU")([numbers])[0]
bits = by_openvino.view(ml_dtypes.bfloat16)


def text(array):
    return " ".join(f"{number:.4g}" for number in array.tolist())


print(f"1 2 3 1000 as bfloat16: OpenVINO {by_openvino.dtype} {text(by_openvino)}, "
      f"onnx {by_onnx.dtype} {text(by_onnx)}; bits as bfloat16: {text(bits)}")
assert by_openvino.dtype == np.float16 and by_openvino[2] == 2.125
assert np.array_equal(by_onnx.astype(np.float32), [1, 2, 3, 1000]) and np.array_equal(bits, by_onnx)
EOS
