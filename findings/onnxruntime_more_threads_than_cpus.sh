#!/usr/bin/env bash
# ONNX Runtime 1.31.1 with two intra-op threads on one CPU has less than 0.8 of the rate with one thread.
#
# Expected: Two threads that share one CPU lose a few percent to context switches.
# Behaviour: The threads spin while they wait for each other, so the waiting thread takes CPU time from the computing
#   thread. The rate often falls to half of the rate with one thread. Set intra_op_num_threads to at most the number of
#   CPUs of the process.
# Output on 2 vCPUs (Intel Xeon), Debian 12, Python 3.11:
#   rate with 2 threads / rate with 1 thread on one CPU: 0.50
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import os, statistics, time
import numpy as np, onnxruntime
from onnx import TensorProto, helper, numpy_helper

cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
draw = np.random.default_rng(0)
layers, weights, last, channels = [], [], "x", 3
for i in range(12):
    weights.append(numpy_helper.from_array(draw.normal(0, 0.1, (32, channels, 3, 3)).astype(np.float32), f"w{i}"))
    layers += [helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1] * 4), helper.make_node("Relu", [f"c{i}"], [f"r{i}"])]
    last, channels = f"r{i}", 32
graph = helper.make_graph(
    layers, "cnn", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 56, 56])],
    [helper.make_tensor_value_info(last, TensorProto.FLOAT, [1, 32, 56, 56])], weights,
)
network = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
images = {"x": draw.normal(size=(1, 3, 56, 56)).astype(np.float32)}


def session(threads):
    """Return a session whose threads all run on the one CPU."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    made = onnxruntime.InferenceSession(network, options)
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {cpu})
    return made


def rate(made, seconds=1.0):
    made.run(None, images)
    start, runs = time.process_time(), 0  # CPU time, so that load of other processes does not matter
    while (elapsed := time.process_time() - start) < seconds:
        made.run(None, images)
        runs += 1
    return runs / elapsed


one, two = session(1), session(2)
ratio = statistics.median(rate(two) / rate(one) for _ in range(5))
print(f"rate with 2 threads / rate with 1 thread on one CPU: {ratio:.2f}")
assert ratio < 0.8
EOF
