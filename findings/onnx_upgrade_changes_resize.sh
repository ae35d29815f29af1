#!/usr/bin/env bash
# When onnx 1.23.2 converts a network from opset 9 or 10 to a later opset, a bilinear Upsample or Resize changes.
#
# Expected: convert_version() keeps the outputs, because the Resize of opset 11 has the attribute
#   coordinate_transformation_mode, whose value `asymmetric` is the only behaviour of opset 10.
# Behaviour: The converter does not write the attribute. Its default in opset 11 is `half_pixel`, so the enlarged image
#   is shifted by a part of a pixel. The checker accepts the network, and the shapes are the same. With mode `nearest`,
#   the outputs may change for a fractional factor. After the conversion of a network with mode `linear`, set
#   coordinate_transformation_mode to `asymmetric`.
# Output, Debian 12, Python 3.11:
#   0 1 2 3 enlarged by 2: opset 9: 0.00 0.50 1.00 1.50 2.00 2.50 3.00 3.00; opset 10: equal;
#   opset 11: 0.00 0.25 0.75 1.25 1.75 2.25 2.75 3.00; with the attribute: equal to opset 9
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOS'
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper, version_converter

onnxruntime.set_default_logger_severity(4)
row = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
graph = helper.make_graph(
    [helper.make_node("Upsample", ["x", "scales"], ["y"], mode="linear")], "upsample",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, row.shape)],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 1, 8])],
    [numpy_helper.from_array(np.array([1, 1, 1, 2], np.float32), "scales")],
)
model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 9)])


def outputs(model):
    onnx.checker.check_model(model, full_check=True)
    values = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": row})[0]
    return " ".join(f"{value:.2f}" for value in values.ravel())


before = outputs(model)
opset10 = outputs(version_converter.convert_version(model, 10))
converted = version_converter.convert_version(model, 11)
after = outputs(converted)
(resize,) = (node for node in converted.graph.node if node.op_type == "Resize")
written = [attribute.name for attribute in resize.attribute]
resize.attribute.append(helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
repaired = outputs(converted)
print(f"0 1 2 3 enlarged by 2: opset 9: {before}; opset 10: {'equal' if opset10 == before else opset10};\n"
      f"opset 11: {after}; with the attribute: {'equal to opset 9' if repaired == before else repaired}")
assert before == opset10 == repaired != after and "coordinate_transformation_mode" not in written
EOS
