#!/usr/bin/env bash
# DynamicQuantizeLinear has three scales for a tensor of zeros, and OpenVINO rounds most ties upwards.
#
# Expected: The standard defines the operator by a formula, so each implementation returns the same numbers.
# Behaviour: The formula divides the range of the input by 255, so the scale of a tensor of zeros is 0. OpenVINO
#   2026.4.1 returns this scale, ONNX Runtime 1.31.1 returns 1, and the reference implementation of onnx 1.23.2 returns
#   1/255. A network that divides by the scale has outputs that are not finite under OpenVINO. The standard rounds ties
#   to even numbers. Of the ties 0.5, 1.5, ..., 254.5, OpenVINO rounds 125 to another number. Random numbers showed no
#   difference.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   scale of zeros: reference 0.003922, ONNX Runtime 1, OpenVINO 0
#   2.5 with a scale of 1: reference 2, ONNX Runtime 2, OpenVINO 3
#   ties that differ from the reference: ONNX Runtime 0, OpenVINO 125 of 255; random numbers: 0 and 0 of 10000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnx, onnxruntime, openvino
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

core = openvino.Core()
kinds = {"quantised": (TensorProto.UINT8, ["n"]), "scale": (TensorProto.FLOAT, []), "zero": (TensorProto.UINT8, [])}
graph = helper.make_graph(
    [helper.make_node("DynamicQuantizeLinear", ["x"], list(kinds))], "quantise",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
    [helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items()],
)
model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
onnx.checker.check_model(model, full_check=True)
reference, session = ReferenceEvaluator(model), onnxruntime.InferenceSession(model.SerializeToString())
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})


def answers(values):
    x = np.array(values, np.float32)
    return [reference.run(None, {"x": x}), session.run(None, {"x": x}), list(compiled(x).values())]


def differing(values):
    right, *others = [quantised for quantised, _, _ in answers(values)]
    return [int((right != other).sum()) for other in others]


scales = [float(scale) for _, scale, _ in answers(np.zeros(4))]
print("scale of zeros: reference {:.4g}, ONNX Runtime {:g}, OpenVINO {:g}".format(*scales))
halves = [int(quantised[1]) for quantised, _, _ in answers([0, 2.5, 255])]
print("2.5 with a scale of 1: reference {}, ONNX Runtime {}, OpenVINO {}".format(*halves))
ties, random = differing([0, *np.arange(255) + 0.5, 255]), differing(np.random.default_rng(0).normal(size=10000))
print(f"ties that differ from the reference: ONNX Runtime {ties[0]}, OpenVINO {ties[1]} of 255; "
      f"random numbers: {random[0]} and {random[1]} of 10000")
assert np.allclose(scales, [1 / 255, 1, 0]) and halves == [2, 2, 3] and ties[0] == 0 and ties[1] > 100
EOF
