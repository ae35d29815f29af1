#!/usr/bin/env bash
# OpenVINO 2026.4.1 turns NaN into 0 in Relu, Clip and Max on the CPU.
#
# Expected: A NaN that arises in a network reaches the output, so a check of the outputs finds it.
# Behaviour: Relu and Clip return 0 for NaN, and Max returns its second operand if the first operand is NaN. ONNX
#   Runtime returns NaN in all three operators. Under OpenVINO, a network whose weights overflow returns finite numbers.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   Relu(nan): ONNX Runtime nan, OpenVINO 0; Clip(nan, 0, 6): ONNX Runtime nan, OpenVINO 0;
#   Max(nan, 0): ONNX Runtime nan, OpenVINO 0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnxruntime, openvino
from onnx import TensorProto, helper

x = np.array([np.nan], np.float32)
core = openvino.Core()


def answers(operator, *bounds):
    names = [f"b{i}" for i in range(len(bounds))]
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", *names], ["y"])], "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [helper.make_tensor(name, TensorProto.FLOAT, [], [bound]) for name, bound in zip(names, bounds)],
    )
    network = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    first = onnxruntime.InferenceSession(network).run(None, {"x": x})[0][0]
    return float(first), float(core.compile_model(core.read_model(network), "CPU")(x)[0][0])


found = {"Relu(nan)": answers("Relu"), "Clip(nan, 0, 6)": answers("Clip", 0, 6), "Max(nan, 0)": answers("Max", 0)}
print("; ".join(f"{what}: ONNX Runtime {a:g}, OpenVINO {b:g}" for what, (a, b) in found.items()))
assert all(np.isnan(a) and b == 0 for a, b in found.values())
EOF
