#!/usr/bin/env bash
# OpenVINO 2026.4.1 saturates uint8 and int8 arithmetic where ONNX Runtime wraps around.
#
# Expected: 200 + 100 in uint8 is 44 under both runtimes, as in NumPy, C and the reference implementation of the
#   standard.
# Behaviour: OpenVINO returns 255 for this sum, and 127 for 100 x 2 in int8. A network that computes with pixels before
#   it casts them to float therefore has other outputs under OpenVINO, without an error.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   uint8 200 + 100: reference, ONNX Runtime, OpenVINO (44, 44, 255); int8 100 x 2: (-56, -56, 127)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnxruntime, openvino
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

core = openvino.Core()


def answers(operator, kind, a, b):
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    graph = helper.make_graph(
        [helper.make_node(operator, ["a", "b"], ["y"])], "one",
        [helper.make_tensor_value_info(name, kind, [1]) for name in "ab"],
        [helper.make_tensor_value_info("y", kind, [1])],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    network, inputs = model.SerializeToString(), {"a": np.array([a], dtype), "b": np.array([b], dtype)}
    return (
        int(ReferenceEvaluator(model).run(None, inputs)[0][0]),
        int(onnxruntime.InferenceSession(network).run(None, inputs)[0][0]),
        int(core.compile_model(core.read_model(network), "CPU")(inputs)[0][0]),
    )


added, multiplied = answers("Add", TensorProto.UINT8, 200, 100), answers("Mul", TensorProto.INT8, 100, 2)
print(f"uint8 200 + 100: reference, ONNX Runtime, OpenVINO {added}; int8 100 x 2: {multiplied}")
assert added == (44, 44, 255) and multiplied == (-56, -56, 127)
EOF
