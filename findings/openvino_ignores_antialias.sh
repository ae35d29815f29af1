#!/usr/bin/env bash
# OpenVINO 2026.4.1 ignores `antialias` of ONNX's Resize, without an error.
#
# Expected: A network that shrinks its image with `antialias: 1` returns the same output as ONNX Runtime and the
#   reference implementation of the standard.
# Behaviour: OpenVINO accepts the attribute and interpolates as with `antialias: 0`. In a large image, pixels between
#   the sampled pixels are lost, which the attribute exists to prevent. A network that contains its preprocessing
#   therefore computes from a different image under OpenVINO.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   6 x 6 to 3 x 3: reference 0.521 0.415 0.618; ONNX Runtime 0.521 0.415 0.618; OpenVINO 0.561 0.384 0.636
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnxruntime, openvino
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

image = np.random.default_rng(0).random((1, 1, 6, 6)).astype(np.float32)


def network(antialias):
    sizes = numpy_helper.from_array(np.array([1, 1, 3, 3]), "sizes")
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear", antialias=antialias)
    graph = helper.make_graph(
        [node], "shrink",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 6, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 3, 3])],
        [sizes],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 19)])


def by_openvino(model):
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled(image)[0]


smooth, plain = network(1), network(0)
reference = ReferenceEvaluator(smooth).run(None, {"x": image})[0]
onnx_runtime = onnxruntime.InferenceSession(smooth.SerializeToString()).run(None, {"x": image})[0]
answer = by_openvino(smooth)


def three(values):
    return " ".join(f"{each:.3f}" for each in values.ravel()[:3])


print(f"6 x 6 to 3 x 3: reference {three(reference)}; ONNX Runtime {three(onnx_runtime)}; OpenVINO {three(answer)}")
assert np.allclose(onnx_runtime, reference, atol=1e-5)
assert np.allclose(answer, by_openvino(plain), atol=1e-6) and not np.allclose(answer, reference, atol=0.01)
EOF
