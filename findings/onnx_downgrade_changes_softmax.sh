#!/usr/bin/env bash
# When onnx 1.23.2 converts a network to an opset below 13, Softmax over any axis but the last changes.
#
# Expected: The converted network returns the same outputs, or the converter refuses the conversion.
# Behaviour: Since opset 13, Softmax runs over one axis. In earlier opsets, it runs over this axis and all later axes
#   together. The converter keeps the node as it is, so a softmax over the channels of an image becomes a softmax over
#   channels and pixels. The checker accepts the file. A softmax over the last axis is not affected, and a conversion
#   upwards returned the same outputs. Compare the outputs after each conversion.
# Output, Debian 12, Python 3.11:
#   sum over the channels of a pixel: opset 13: 1.00; converted to opset 12: 0.25; back to opset 13: 0.25
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOS'
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, version_converter

image = np.ones((1, 3, 2, 2), np.float32)
graph = helper.make_graph(
    [helper.make_node("Softmax", ["x"], ["y"], axis=1)], "segments",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, image.shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, image.shape)],
)
new = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 13)])
old = version_converter.convert_version(new, 12)
back = version_converter.convert_version(old, 13)


def total(model):
    onnx.checker.check_model(model, full_check=True)
    answer = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": image})[0]
    return answer[0, :, 0, 0].sum()


totals = [total(model) for model in (new, old, back)]
assert [model.opset_import[0].version for model in (new, old, back)] == [13, 12, 13]
print("sum over the channels of a pixel: opset 13: {:.2f}; converted to opset 12: {:.2f}; "
      "back to opset 13: {:.2f}".format(*totals))
assert np.allclose(totals, [1, 0.25, 0.25])
EOS
