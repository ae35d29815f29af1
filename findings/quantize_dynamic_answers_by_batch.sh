#!/usr/bin/env bash
# After quantize_dynamic of ONNX Runtime 1.31.1, the output for an image depends on the other images of its batch.
#
# Expected: The output for an image is the same alone and in a batch, as before the quantisation.
# Behaviour: DynamicQuantizeLinear computes one scale from the whole batch. If another image of the batch has values ten
#   times as large, the output changes by as much as the quantisation changed it, or more. With dynamic batching, the
#   output of a server therefore depends on which requests arrive together.
# Output on an Intel Xeon, Debian 12, Python 3.11:
#   change of an image's answer by its batch: float32 0.0000, quantised 0.1490 (error of the quantisation 0.0261)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 sympy==1.14.0
cd "$folder"
venv/bin/python - <<'EOF'
import logging
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

logging.disable(logging.WARNING)
draw = np.random.default_rng(0)
weights = [numpy_helper.from_array(draw.normal(0, 0.1, shape).astype(np.float32), name)
           for name, shape in (("w1", (192, 64)), ("w2", (64, 10)))]
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w1"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
     helper.make_node("MatMul", ["b", "w2"], ["y"])], "two layers",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 192])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])], weights,
)
onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), "float.onnx")
quantize_dynamic("float.onnx", "quantised.onnx")
image = draw.normal(size=(1, 192)).astype(np.float32)
batch = np.concatenate([image, 10 * image])


def answers(path):
    session = onnxruntime.InferenceSession(path)
    return session.run(None, {"x": image})[0][0], session.run(None, {"x": batch})[0][0]


alone, beside = answers("float.onnx")
quantised_alone, quantised_beside = answers("quantised.onnx")
size = np.abs(alone).max()
change, quantised_change = np.abs(alone - beside).max() / size, np.abs(quantised_alone - quantised_beside).max() / size
error = np.abs(quantised_alone - alone).max() / size
print(f"change of an image's answer by its batch: float32 {change:.4f}, quantised {quantised_change:.4f} "
      f"(error of the quantisation {error:.4f})")
assert change < 1e-5 and quantised_change > 1e-3
EOF
