#!/usr/bin/env bash
# With an IOBinding, ONNX Runtime 1.31.1 overwrites the output of the previous run, or refuses another batch size.
#
# Expected: bind_output("y") without a buffer lets each run allocate its own output, in the size of its batch.
# Behaviour: The first run allocates the output, and all later runs write into this memory. An array that
#   get_outputs()[0].numpy() returned therefore changes with the next request. A run with another batch size raises
#   RuntimeError. Call clear_binding_outputs() and bind_output() again before each run, or copy the output by
#   copy_outputs_to_cpu().
# Output, Debian 12, Python 3.11:
#   output of the first run: 1; the same array after a second run: 4; batch of two: RuntimeError, bound again: (2, 1)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOS'
import numpy as np, onnxruntime
from onnx import TensorProto, helper

onnxruntime.set_default_logger_severity(4)
graph = helper.make_graph(
    [helper.make_node("Mul", ["x", "x"], ["y"])], "square",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1])],
)
model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
session = onnxruntime.InferenceSession(model.SerializeToString())
binding = session.io_binding()
binding.bind_output("y")


def run(number, batch=1):
    binding.bind_cpu_input("x", np.full((batch, 1), number, np.float32))
    session.run_with_iobinding(binding)
    return binding.get_outputs()[0].numpy()


first = run(1)
before = float(first[0, 0])
run(2)
after = float(first[0, 0])
try:
    refused = str(run(2, batch=2).shape)
except RuntimeError as error:
    refused = type(error).__name__
binding.clear_binding_outputs()
binding.bind_output("y")
shape = run(2, batch=2).shape
print(f"output of the first run: {before:.0f}; the same array after a second run: {after:.0f}; "
      f"batch of two: {refused}, bound again: {shape}")
assert (before, after, refused, shape) == (1, 4, "RuntimeError", (2, 1))
EOS
