#!/usr/bin/env bash
# torch.onnx.export of torch 2.13.0 may declare an open batch and write the example's batch size into the network.
#
# Expected: A dimension that `dynamic_shapes` names is open in the file, or the export fails.
# Behaviour: The result depends on the example and on how the dimension is named. Take a network that reshapes by
#   len(x). With an example of one image and {0: "batch"}, the file has an open input and a Reshape with the constant 1,
#   so ONNX Runtime 1.31.1 joins the images of a batch. With {0: Dim("batch")}, the file has a closed batch, without an
#   error. With an example of two images and {0: "batch"}, the file is right. With x.size(0) in place of len(x), the
#   file is right in each case.
# Output, Debian 12, Python 3.11:
#   example of 1, "batch": input ['batch', 4], output [1, 4]; a batch of two gives (1, 8)
#   example of 1, Dim: input [1, 4], output [1, 4]
#   example of 2, "batch": input ['batch', 4], output ['batch', 4]; a batch of two gives (2, 4)
#   x.size(0), example of 1, "batch": input ['batch', 4], output ['batch', 4]; a batch of two gives (2, 4)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
cat > export.py <<'EOF'
import warnings
import numpy as np, onnxruntime, torch

warnings.simplefilter("ignore", FutureWarning)
onnxruntime.set_default_logger_severity(3)


class ByLen(torch.nn.Module):
    def forward(self, x):
        return x.reshape(len(x), -1).softmax(1)


class BySize(torch.nn.Module):
    def forward(self, x):
        return x.reshape(x.size(0), -1).softmax(1)


def declared(value):
    return [dimension.dim_param or dimension.dim_value for dimension in value.type.tensor_type.shape.dim]


def export(what, network, images, name):
    program = torch.onnx.export(
        network.eval(), (torch.zeros(images, 4),), dynamo=True, verbose=False, dynamic_shapes={"x": {0: name}}
    )
    file = program.model_proto
    shapes = declared(file.graph.input[0]), declared(file.graph.output[0])
    text, answer = f"{what}: input {shapes[0]}, output {shapes[1]}", None
    if shapes[0][0] == "batch":
        session = onnxruntime.InferenceSession(file.SerializeToString())
        answer = session.run(None, {"x": np.zeros((2, 4), np.float32)})[0].shape
        text += f"; a batch of two gives {answer}"
    print(text)
    return *shapes, answer


opened = (["batch", 4], ["batch", 4], (2, 4))
assert export('example of 1, "batch"', ByLen(), 1, "batch") == (["batch", 4], [1, 4], (1, 8))
assert export("example of 1, Dim", ByLen(), 1, torch.export.Dim("batch")) == ([1, 4], [1, 4], None)
assert export('example of 2, "batch"', ByLen(), 2, "batch") == opened
assert export('x.size(0), example of 1, "batch"', BySize(), 1, "batch") == opened
EOF
venv/bin/python export.py
