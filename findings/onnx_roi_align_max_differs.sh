#!/usr/bin/env bash
# ONNX Runtime 1.31.1 and OpenVINO 2026.4.1 return different values for RoiAlign with mode "max".
#
# Expected: A region with one sampling point has the same average and maximum: the value that bilinear interpolation
#   gives at this point. Both runtimes return this value.
# Behaviour: Both runtimes return the interpolated value for "avg". For "max", OpenVINO returns the interpolated value,
#   too. ONNX Runtime and the reference implementation of onnx return the largest of the four weighted neighbours, here a
#   third of the interpolated value. The specification demands interpolation (discussed in onnx/onnx issue 4764).
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   avg: onnxruntime 7.5, reference 7.5, openvino 7.5; max: onnxruntime 2.5, reference 2.5, openvino 7.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 openvino==2026.4.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnxruntime, openvino
from onnx import TensorProto, checker, helper, save
from onnx.reference import ReferenceEvaluator

# The centre of the region lies between the pixels 5, 6, 9 and 10.
IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
REGIONS = np.array([[1, 1, 3, 3]], np.float32)
INPUTS = {"image": IMAGE, "regions": REGIONS, "index": np.array([0])}


def answers(mode):
    node = helper.make_node(
        "RoiAlign", list(INPUTS), ["y"], mode=mode, output_height=1, output_width=1, sampling_ratio=1
    )
    types = TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.INT64
    inputs = [
        helper.make_tensor_value_info(name, of, values.shape)
        for (name, values), of in zip(INPUTS.items(), types)
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1, 1])
    graph = helper.make_graph([node], "region", inputs, [output])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 16)])
    checker.check_model(model)
    save(model, f"{mode}.onnx")
    compiled = openvino.Core().compile_model(f"{mode}.onnx", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = {
        "onnxruntime": onnxruntime.InferenceSession(f"{mode}.onnx").run(None, INPUTS)[0],
        "reference": ReferenceEvaluator(model).run(None, INPUTS)[0],
        "openvino": compiled(list(INPUTS.values()))[0],
    }
    return {name: float(values.ravel()[0]) for name, values in found.items()}


found = {mode: answers(mode) for mode in ("avg", "max")}
print("; ".join(f"{mode}: " + ", ".join(f"{n} {v:g}" for n, v in of.items()) for mode, of in found.items()))
assert set(found["avg"].values()) == {7.5}
assert found["max"] == {"onnxruntime": 2.5, "reference": 2.5, "openvino": 7.5}
EOF
