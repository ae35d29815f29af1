#!/usr/bin/env bash
# OpenVINO 2026.4.1 keeps only 32 bits of the int64 tensors of a network on the CPU, without an error.
#
# Expected: A network with int64 inputs and outputs passes 64-bit numbers on, as under ONNX Runtime.
# Behaviour: An Identity of int64 declares int64 inputs and outputs, and changes every number that does not fit into 32
#   bits. Identifiers, hashes and times in nanoseconds become wrong; indices of vocabularies and classes stay right.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   declared i64; sent [1, 2147483647, 4294967301, 1700000000000000000];
#   ONNX Runtime [1, 2147483647, 4294967301, 1700000000000000000]; OpenVINO [1, 2147483647, 5, 908722176]
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
    [helper.make_node("Identity", ["x"], ["y"])], "same",
    [helper.make_tensor_value_info("x", TensorProto.INT64, [4])],
    [helper.make_tensor_value_info("y", TensorProto.INT64, [4])],
)
network = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
x = np.array([1, 2**31 - 1, 2**32 + 5, 1_700_000_000_000_000_000])
core = openvino.Core()
compiled = core.compile_model(core.read_model(network), "CPU")
answer = compiled(x)[0]
expected = onnxruntime.InferenceSession(network).run(None, {"x": x})[0]
print(f"declared {compiled.output(0).element_type.get_type_name()}; sent {x.tolist()};"
      f" ONNX Runtime {expected.tolist()}; OpenVINO {answer.tolist()}")
assert expected.tolist() == x.tolist()
assert answer[:2].tolist() == x[:2].tolist() and (answer[2:] != x[2:]).all()
EOF
