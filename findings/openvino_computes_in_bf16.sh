#!/usr/bin/env bash
# OpenVINO 2026.4.1 computes a float32 network in bfloat16 if the CPU can, without a precision hint.
#
# Expected: OpenVINO computes in float32 unless a precision is set, and bfloat16 needs AMX.
# Behaviour: On a CPU with AVX512_BF16 or AMX_BF16, the compiled network reports bfloat16, and its outputs differ from
#   ONNX Runtime's by about 0.3 %. INFERENCE_PRECISION_HINT=f32 prevents this. On other CPUs, OpenVINO computes in
#   float32. A comparison with the rates of another runtime may therefore compare two precisions.
# Output on an Intel Xeon with AMX, Debian 12, Python 3.11:
#   OpenVINO computes in bf16; largest relative error 0.0028, with hint f32 0.0000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! grep -Eq 'avx512_bf16|amx_bf16' /proc/cpuinfo; then
  echo "This needs a CPU with bfloat16 instructions; nothing was tested."
  exit 77
fi
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnxruntime, openvino
from onnx import TensorProto, helper, numpy_helper

draw = np.random.default_rng(0)
weights = draw.normal(size=(256, 256)).astype(np.float32)
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"])], "product",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 256])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 256])],
    [numpy_helper.from_array(weights, "w")],
)
network = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
x = draw.normal(size=(8, 256)).astype(np.float32)
expected = onnxruntime.InferenceSession(network).run(None, {"x": x})[0]
core = openvino.Core()


def error(compiled):
    return np.abs(compiled(x)[0] - expected).max() / np.abs(expected).max()


default = core.compile_model(core.read_model(network), "CPU")
exact = core.compile_model(core.read_model(network), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
precision = default.get_property("INFERENCE_PRECISION_HINT").to_string()
print(f"OpenVINO computes in {precision}; largest relative error {error(default):.4f}, "
      f"with hint f32 {error(exact):.4f}")
assert precision == "bf16"
assert error(exact) < 1e-5 and error(default) > 1e-4
EOF
