#!/usr/bin/env bash
# With `ceil_mode`, OpenVINO 2026.4.1 returns another shape for MaxPool, and other numbers for AveragePool.
#
# Expected: For a pooling layer of torch with ceil_mode=True, OpenVINO returns the output of torch and ONNX Runtime.
# Behaviour: If the last window of MaxPool begins beyond the edge of the image, torch and ONNX Runtime drop this window,
#   as opset 22 of the standard demands. OpenVINO keeps the window and returns the lowest float32 for it. For
#   AveragePool with `count_include_pad: 1`, OpenVINO also counts the positions beyond the padding, so its last row and
#   column are smaller. No error occurs.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   MaxPool 2 x 2, stride 3, of 6 x 6 ones: ONNX Runtime (1, 1, 2, 2), OpenVINO (1, 1, 3, 3), lowest -3.4e+38
#   AveragePool 3 x 3, stride 2, pads 1, of 6 x 6 ones: last value ONNX Runtime 0.250, OpenVINO 0.111
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOS'
import numpy as np, onnx, onnxruntime, openvino
from onnx import TensorProto, helper

core = openvino.Core()
ones = np.ones((1, 1, 6, 6), np.float32)


def answers(operator, **attributes):
    graph = helper.make_graph(
        [helper.make_node(operator, ["x"], ["y"], ceil_mode=1, **attributes)], "pool",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ones.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "c", "h", "w"])],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 22)])
    onnx.checker.check_model(model, full_check=True)
    file = model.SerializeToString()
    compiled = core.compile_model(core.read_model(file), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return onnxruntime.InferenceSession(file).run(None, {"x": ones})[0], compiled(ones)[0]


right, larger = answers("MaxPool", kernel_shape=[2, 2], strides=[3, 3])
print(f"MaxPool 2 x 2, stride 3, of 6 x 6 ones: ONNX Runtime {right.shape}, OpenVINO {larger.shape}, "
      f"lowest {larger.min():.1e}")
mean, smaller = answers("AveragePool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, count_include_pad=1)
last, other = mean[0, 0, -1, -1], smaller[0, 0, -1, -1]
print(f"AveragePool 3 x 3, stride 2, pads 1, of 6 x 6 ones: last value ONNX Runtime {last:.3f}, OpenVINO {other:.3f}")
assert right.shape == (1, 1, 2, 2) and larger.shape == (1, 1, 3, 3) and larger.min() < -1e38
assert np.isclose(last, 1 / 4) and np.isclose(other, 1 / 9)
EOS
