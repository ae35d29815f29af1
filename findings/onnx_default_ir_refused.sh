#!/usr/bin/env bash
# ONNX Runtime 1.31.1 refuses a graph made with the defaults of onnx 1.23.2; both were the newest releases.
#
# Expected: The newest ONNX Runtime loads a graph that helper.make_model of the newest onnx makes.
# Behaviour: make_model writes IR version 14. ONNX Runtime accepts IR versions up to 13 and raises an error, although
#   the graph uses nothing new of version 14. ONNX Runtime accepts helper.make_model(graph, ir_version=10).
# Output, Debian 12, Python 3.11:
#   IR 14: Unsupported model IR version: 14, max supported IR version: 13; IR 10: loaded
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import onnxruntime
from onnx import TensorProto, helper

value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8]) for name in ("x", "y")]
graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", value[:1], value[1:])


def outcome(**settings):
    network = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], **settings)
    try:
        onnxruntime.InferenceSession(network.SerializeToString())
        text = "loaded"
    except Exception as error:
        text = str(error).strip().rpartition(") ")[2]
    return f"IR {network.ir_version}: {text}"


default, older = outcome(), outcome(ir_version=10)
print(f"{default}; {older}")
assert "Unsupported model IR version" in default and older == "IR 10: loaded"
EOF
