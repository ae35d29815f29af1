#!/usr/bin/env bash
# An ONNX graph made for batch 1 and relabelled to an open batch passes every check and returns wrong outputs.
#
# Expected: The checker of onnx 1.23.2 or ONNX Runtime 1.31.1 refuses a Reshape that was written for batch 1.
# Behaviour: Strict shape inference, the full checker and ONNX Runtime accept a batch of two. The constant shape (1, -1)
#   of the Reshape joins the images of the batch, so Softmax runs over both images. The output has the declared shape.
#   Before you relabel a network, compare the outputs for a batch with the outputs for its single images.
# Output, Debian 12, Python 3.11:
#   checked; output shape (2, 10); sums of probabilities: alone 1.0, in a batch of two 0.5 and 0.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper

shapes = [numpy_helper.from_array(np.array(shape), name) for name, shape in (("row", (1, -1)), ("rows", (-1, 10)))]
graph = helper.make_graph(
    [helper.make_node("Reshape", ["scores", "row"], ["a"]), helper.make_node("Softmax", ["a"], ["b"], axis=1),
     helper.make_node("Reshape", ["b", "rows"], ["probabilities"])], "softmax of one image",
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
    [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 10])], shapes,
)
network = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
for value in (network.graph.input[0], network.graph.output[0]):
    value.type.tensor_type.shape.dim[0].dim_param = "batch"
onnx.checker.check_model(network, full_check=True)
onnx.shape_inference.infer_shapes(network, check_type=True, strict_mode=True, data_prop=True)
session = onnxruntime.InferenceSession(network.SerializeToString())
alone = session.run(None, {"scores": np.zeros((1, 10), np.float32)})[0]
both = session.run(None, {"scores": np.zeros((2, 10), np.float32)})[0]
print(f"checked; output shape {both.shape}; sums of probabilities: alone {alone.sum():.1f}, in a batch of two "
      f"{both[0].sum():.1f} and {both[1].sum():.1f}")
assert both.shape == (2, 10) and np.allclose(alone.sum(), 1) and np.allclose(both.sum(axis=1), 0.5)
EOF
