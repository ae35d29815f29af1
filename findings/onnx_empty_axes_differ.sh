#!/usr/bin/env bash
# Squeeze and Unsqueeze with an empty list of axes return up to three different shapes.
#
# Expected: An empty tensor of axes means no axes, so each runtime returns the shape of the input.
# Behaviour: The reference implementation of onnx 1.23.2 returns the shape of the input. OpenVINO 2026.4.1 adds a
#   dimension in Unsqueeze, and in Squeeze removes the first of two dimensions of size 1. ONNX Runtime 1.31.1 removes
#   both in Squeeze, as if the list were absent, and only warns that it had inferred another shape. Programs that
#   compute the list of axes may write such a node.
# Output, Debian 12, Python 3.11:
#   Unsqueeze of [2, 3]: reference (2, 3), ONNX Runtime (2, 3), OpenVINO (1, 2, 3)
#   Squeeze of [1, 3, 1]: reference (1, 3, 1), ONNX Runtime (3,), OpenVINO (3, 1)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnx, onnxruntime, openvino
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

core = openvino.Core()
onnxruntime.set_default_logger_severity(3)


def shapes(operator, *shape):
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "axes"], ["y"])], "no axes",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.zeros(0, np.int64), "axes")],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model, full_check=True)
    x, file = np.ones(shape, np.float32), model.SerializeToString()
    answers = (
        ReferenceEvaluator(model).run(None, {"x": x})[0],
        onnxruntime.InferenceSession(file).run(None, {"x": x})[0],
        core.compile_model(core.read_model(file), "CPU")(x)[0],
    )
    found = [answer.shape for answer in answers]
    print("{} of {}: reference {}, ONNX Runtime {}, OpenVINO {}".format(operator, list(shape), *found))
    return found


assert shapes("Unsqueeze", 2, 3) == [(2, 3), (2, 3), (1, 2, 3)]
assert shapes("Squeeze", 1, 3, 1) == [(1, 3, 1), (3,), (3, 1)]
EOF
