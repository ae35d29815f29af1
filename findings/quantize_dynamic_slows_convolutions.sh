#!/usr/bin/env bash
# After quantize_dynamic of ONNX Runtime 1.31.1, a convolutional network has less than 0.7 of its rate in float32.
#
# Expected: On a CPU with VNNI, int8 is at least 1.2 times as fast as float32.
# Behaviour: Conv becomes ConvInteger, whose kernel on x86 has no optimised layout, and quantize_dynamic adds two passes
#   over each activation.
# Output on an Intel Xeon with AVX512_VNNI, Debian 12, Python 3.11:
#   rate of the quantised network / rate in float32: 0.15; operators: Cast, ConvInteger, DynamicQuantizeLinear, Mul, Relu
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6 sympy==1.14.0
cd "$folder"
venv/bin/python - <<'EOF'
import logging, statistics, time
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

logging.disable(logging.WARNING)
draw = np.random.default_rng(0)
layers, weights, last = [], [], "x"
for i in range(6):
    weights.append(numpy_helper.from_array(draw.normal(0, 0.1, (32, 32, 3, 3)).astype(np.float32), f"w{i}"))
    layers += [helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1] * 4), helper.make_node("Relu", [f"c{i}"], [f"r{i}"])]
    last = f"r{i}"
graph = helper.make_graph(
    layers, "cnn", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 56, 56])],
    [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, 32, 56, 56])], weights,
)
onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), "float.onnx")
quantize_dynamic("float.onnx", "quantised.onnx")
image = {"x": draw.normal(size=(1, 32, 56, 56)).astype(np.float32)}


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options)


def run_s(made):
    made.run(None, image)
    start = time.perf_counter()
    for _ in range(20):
        made.run(None, image)
    return time.perf_counter() - start


plain, quantised = session("float.onnx"), session("quantised.onnx")
ratio = statistics.median(run_s(plain) / run_s(quantised) for _ in range(5))
operators = ", ".join(sorted({node.op_type for node in onnx.load("quantised.onnx").graph.node}))
print(f"rate of the quantised network / rate in float32: {ratio:.2f}; operators: {operators}")
assert ratio < 0.7 and "ConvInteger" in operators
EOF
