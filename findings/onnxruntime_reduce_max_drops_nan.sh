#!/usr/bin/env bash
# ONNX Runtime 1.31.1 drops NaN in ReduceMax, and keeps NaN in Max.
#
# Expected: The largest of 1 and NaN is the same for Max of two tensors and for ReduceMax of one tensor.
# Behaviour: Max(1, NaN) is NaN, and ReduceMax([1, NaN]) is 1. In the reference implementation of the standard, both are
#   NaN. In a network with global max pooling by ReduceMax, the output therefore does not show an overflow.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   Max(1, nan): nan; ReduceMax([1, nan]): 1, by the reference nan
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator


def network(operator, names, length, **more):
    graph = helper.make_graph(
        [helper.make_node(operator, names, ["y"], **more)], "largest",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [length]) for name in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])


def answer(model, **inputs):
    tensors = {name: np.array(values, np.float32) for name, values in inputs.items()}
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return float(session.run(None, tensors)[0][0]), float(ReferenceEvaluator(model).run(None, tensors)[0][0])


of_two, _ = answer(network("Max", ["a", "b"], 1), a=[1], b=[np.nan])
of_one, reference = answer(network("ReduceMax", ["x"], 2, axes=[0], keepdims=1), x=[1, np.nan])
print(f"Max(1, nan): {of_two:g}; ReduceMax([1, nan]): {of_one:g}, by the reference {reference:g}")
assert np.isnan(of_two) and np.isnan(reference) and of_one == 1
EOF
