#!/usr/bin/env bash
# ONNX Runtime 1.31.1 convolves subnormal numbers many times more slowly than normal numbers on x86.
#
# Expected: A convolution of values near zero takes at most 10 % longer, because a runtime for inference flushes these
#   values to zero.
# Behaviour: If activations fall below 1.2e-38, as in a deep network with untrained weights, x86 CPUs handle each
#   multiplication in microcode, and the rate falls to a tenth or less. The session option
#   session.set_denormal_as_zero=1 restores the rate, but only the first session of a process can set this option. A
#   benchmark with random weights may measure this slow case by accident.
# Output on an Intel Xeon, Debian 12, Python 3.11:
#   rate with subnormal inputs / rate with normal inputs: 0.006; with set_denormal_as_zero 1.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
cat > ratio.py <<'EOF'
import statistics, sys, time
import numpy as np, onnxruntime
from onnx import TensorProto, helper, numpy_helper

draw = np.random.default_rng(0)
weights = numpy_helper.from_array(draw.normal(size=(32, 16, 3, 3)).astype(np.float32), "w")
graph = helper.make_graph(
    [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)], "convolution",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 56, 56])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 56, 56])], [weights],
)
network = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
normal = draw.normal(size=(1, 16, 56, 56)).astype(np.float32)
subnormal = normal * np.float32(1e-39)


def session(flush):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.set_denormal_as_zero", flush)
    return onnxruntime.InferenceSession(network, options)


def run_s(made, x):
    made.run(None, {"x": x})
    start = time.process_time()
    for _ in range(10):
        made.run(None, {"x": x})
    return time.process_time() - start


def ratio(made):
    return statistics.median(run_s(made, normal) / run_s(made, subnormal) for _ in range(5))


print(ratio(session(sys.argv[1])))
EOF
keeping=$(venv/bin/python ratio.py 0)
flushing=$(venv/bin/python ratio.py 1)
printf 'rate with subnormal inputs / rate with normal inputs: %.3f; with set_denormal_as_zero %.1f\n' "$keeping" "$flushing"
venv/bin/python -c "assert $keeping < 0.2 and $flushing > 0.5"
