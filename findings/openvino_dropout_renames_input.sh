#!/usr/bin/env bash
# OpenVINO 2026.4.1 gives an input the name of the output if a network passes this input through Dropout only.
#
# Expected: The input "x" keeps its name, as it does if Identity passes the input to the output "y".
# Behaviour: Both the input and the output have the name "y", and no tensor has the name "x". A program that sets the
#   input by its name from the ONNX file gets an error. With Identity, or with Relu before Dropout, the input is "x".
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   Identity: input x, output y; Dropout: input y, output y; Relu, Dropout: input x, output y
#   Dropout, set by the name x: RuntimeError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnx, onnxruntime, openvino
from onnx import TensorProto, helper

x = np.ones((1, 4), np.float32)
core = openvino.Core()


def networks(*operators):
    tensors = ["x", *(f"t{i}" for i in range(1, len(operators))), "y"]
    nodes = [helper.make_node(each, [a], [b]) for each, a, b in zip(operators, tensors, tensors[1:])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "one", ends[:1], ends[1:])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model, full_check=True)
    network = model.SerializeToString()
    assert (onnxruntime.InferenceSession(network).run(["y"], {"x": x})[0] == x).all()
    return core.compile_model(core.read_model(network), "CPU")


made = {of: networks(*of) for of in (("Identity",), ("Dropout",), ("Relu", "Dropout"))}
names = {of: (*made[of].input(0).names, *made[of].output(0).names) for of in made}
print("; ".join(f"{', '.join(of)}: input {a}, output {b}" for of, (a, b) in names.items()))
assert list(names.values()) == [("x", "y"), ("y", "y"), ("x", "y")]
try:
    made["Dropout",]({"x": x})
except RuntimeError as error:
    assert "x was not found" in str(error), error
    print("Dropout, set by the name x: RuntimeError")
else:
    raise AssertionError("Dropout: the input has the name x")
EOF
