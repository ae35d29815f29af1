#!/usr/bin/env bash
# OpenVINO 2026.4.1 computes float64 networks in float32 on the CPU, and still declares float64.
#
# Expected: OpenVINO computes a network of float64 tensors in float64, or refuses it.
# Behaviour: OpenVINO declares inputs and outputs as f64, but returns the largest float32 for 1e300, and 0
#   for 1 + 1e-12 - 1.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   declared f64; 1e300 + 1: ONNX Runtime 1e+300, OpenVINO 3.40282e+38; 1 + 1e-12 - 1: 1.00009e-12, 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnxruntime, openvino
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("Add", ["a", "b"], ["y"])], "add",
    [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [2]) for name in "ab"],
    [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [2])],
)
network = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
inputs = {"a": np.array([1e300, 1 + 1e-12]), "b": np.array([1.0, -1.0])}
core = openvino.Core()
compiled = core.compile_model(core.read_model(network), "CPU")
answer = compiled(inputs)[0]
expected = onnxruntime.InferenceSession(network).run(None, inputs)[0]
print(f"declared {compiled.output(0).element_type.get_type_name()}; 1e300 + 1: ONNX Runtime {expected[0]:g}, OpenVINO"
      f" {answer[0]:g}; 1 + 1e-12 - 1: {expected[1]:g}, {answer[1]:g}")
assert compiled.output(0).element_type == openvino.Type.f64
assert answer[0] == np.finfo(np.float32).max and answer[1] == 0 and expected[1] > 0
EOF
