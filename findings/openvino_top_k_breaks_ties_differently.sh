#!/usr/bin/env bash
# OpenVINO 2026.4.1 returns other indices than ONNX Runtime for equal numbers in TopK.
#
# Expected: Of equal numbers, TopK returns the lower index first, as the standard of ONNX requires.
# Behaviour: OpenVINO returns equal numbers in another order, and may return a higher index instead of a lower index.
#   Equal logits are frequent after quantisation, so the five best labels of an image depend on the runtime. The values
#   are equal, and ArgMax returns the lower index in both runtimes.
# Output on an Intel Xeon, Debian 12, Python 3.11:
#   five largest of 10 zeros: ONNX Runtime 0 1 2 3 4, OpenVINO 1 2 3 4 0; if 1, 5 and 9 are larger: 1 5 9 0 2, 9 5 1 2 4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOS'
import numpy as np, onnx, onnxruntime, openvino as ov
from onnx import TensorProto, helper, numpy_helper

graph = helper.make_graph(
    [helper.make_node("TopK", ["x", "k"], ["values", "indices"])], "top",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 10])],
    [helper.make_tensor_value_info("values", TensorProto.FLOAT, ["n", 5]),
     helper.make_tensor_value_info("indices", TensorProto.INT64, ["n", 5])],
    [numpy_helper.from_array(np.array([5]), "k")],
)
onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), "top.onnx")
logits = np.zeros((2, 10), np.float32)
logits[1, [1, 5, 9]] = 5
values, by_onnxruntime = onnxruntime.InferenceSession("top.onnx").run(None, {"x": logits})
answer = ov.compile_model("top.onnx", "CPU")([logits])
by_openvino = answer[1]


def text(indices):
    return " ".join(map(str, indices))


print(f"five largest of 10 zeros: ONNX Runtime {text(by_onnxruntime[0])}, OpenVINO {text(by_openvino[0])}; "
      f"if 1, 5 and 9 are larger: {text(by_onnxruntime[1])}, {text(by_openvino[1])}")
assert np.array_equal(values, answer[0]) and by_onnxruntime.tolist() == [[0, 1, 2, 3, 4], [1, 5, 9, 0, 2]]
assert by_openvino.tolist() != by_onnxruntime.tolist()
EOS
