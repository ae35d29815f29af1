#!/usr/bin/env bash
# OpenVINO 2026.4.1 ignores `keep_aspect_ratio_policy` and `exclude_outside` of ONNX's Resize, without an error.
#
# Expected: OpenVINO refuses an attribute that it does not support, as it refuses half_pixel_symmetric.
# Behaviour: With `keep_aspect_ratio_policy: not_larger`, OpenVINO stretches the image. The shape of its output then
#   differs from the shape that onnx infers, and that the reference implementation and ONNX Runtime return. With
#   `exclude_outside: 1`, the shape is right, but the numbers are those of `exclude_outside: 0`.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   6 x 4 into 3 x 3, not_larger: reference and ONNX Runtime (1, 1, 3, 2), OpenVINO (1, 1, 3, 3)
#   cubic, exclude_outside: largest difference from the reference: ONNX Runtime 0.000, OpenVINO 0.034
#   half_pixel_symmetric: refused by OpenVINO
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import numpy as np, onnx, onnxruntime, openvino
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

image = np.random.default_rng(0).random((1, 1, 6, 4)).astype(np.float32)
core = openvino.Core()


def network(**attributes):
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], axes=[2, 3], **attributes)], "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, image.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, "height", "width"])],
        [numpy_helper.from_array(np.array([3, 3]), "sizes")],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 19)])
    onnx.checker.check_model(model, full_check=True)
    return model


def by_openvino(model):
    network = core.read_model(model.SerializeToString())
    return core.compile_model(network, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(image)[0]


def answers(model):
    reference = ReferenceEvaluator(model).run(None, {"x": image})[0]
    first = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": image})[0]
    return reference, first, by_openvino(model)


reference, first, stretched = answers(network(mode="linear", keep_aspect_ratio_policy="not_larger"))
print(f"6 x 4 into 3 x 3, not_larger: reference and ONNX Runtime {reference.shape}, OpenVINO {stretched.shape}")
assert reference.shape == first.shape == (1, 1, 3, 2) and np.allclose(first, reference, atol=1e-5)
assert np.allclose(stretched, by_openvino(network(mode="linear")), atol=1e-6)

reference, first, included = answers(network(mode="cubic", exclude_outside=1))
errors = [float(abs(answer - reference).max()) for answer in (first, included)]
print("cubic, exclude_outside: largest difference from the reference: ONNX Runtime {:.3f}, OpenVINO {:.3f}".format(*errors))
assert errors[0] < 1e-5 and errors[1] > 0.01
assert np.allclose(included, by_openvino(network(mode="cubic")), atol=1e-6)

try:
    by_openvino(network(mode="linear", coordinate_transformation_mode="half_pixel_symmetric"))
except RuntimeError as error:
    assert "half_pixel_symmetric" in str(error)
    print("half_pixel_symmetric: refused by OpenVINO")
else:
    raise SystemExit("half_pixel_symmetric: accepted by OpenVINO")
EOF
