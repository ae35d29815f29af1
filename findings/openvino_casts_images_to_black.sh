#!/usr/bin/env bash
# OpenVINO 2026.4.1 casts an array of another type to the type of the input, and turns a normalised image black.
#
# Expected: A compiled network with an input of type uint8 refuses an array of type float32, as ONNX Runtime does.
# Behaviour: OpenVINO truncates the numbers to uint8 without a warning. An image with values from 0 to 1 becomes an
#   image of zeros and ones, and 300 in an int64 array becomes 44. OpenVINO checks the type of an ov.Tensor only. Pass
#   ov.Tensor(array) instead of the array.
# Output, Debian 12, Python 3.11:
#   mean of float32 values 0.99: 0; of int64 values 300: 44; ONNX Runtime: InvalidArgument; ov.Tensor: RuntimeError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOS'
import numpy as np, onnx, onnxruntime, openvino as ov
from onnx import TensorProto, helper

onnxruntime.set_default_logger_severity(4)
nodes = [
    helper.make_node("Cast", ["image"], ["x"], to=TensorProto.FLOAT),
    helper.make_node("ReduceMean", ["x"], ["y"], keepdims=0),
]
graph = helper.make_graph(
    nodes, "mean", [helper.make_tensor_value_info("image", TensorProto.UINT8, [1, 3, 8, 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
)
onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), "mean.onnx")
compiled = ov.compile_model("mean.onnx", "CPU")
normalised = np.full((1, 3, 8, 8), 0.99, np.float32)
integers = np.full((1, 3, 8, 8), 300, np.int64)


def refusal(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "accepted"


black = float(compiled([normalised])[0])
wrapped = float(compiled([integers])[0])
session = onnxruntime.InferenceSession("mean.onnx")
by_session = refusal(lambda: session.run(None, {"image": normalised}))
by_tensor = refusal(lambda: compiled([ov.Tensor(normalised)]))
print(f"mean of float32 values 0.99: {black:.0f}; of int64 values 300: {wrapped:.0f}; "
      f"ONNX Runtime: {by_session}; ov.Tensor: {by_tensor}")
assert (black, wrapped, by_session, by_tensor) == (0, 44, "InvalidArgument", "RuntimeError")
EOS
