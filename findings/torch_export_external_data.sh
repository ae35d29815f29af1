#!/usr/bin/env bash
# torch.onnx.export of torch 2.13.0 writes the weights of a tiny network into a second file.
#
# Expected: The export writes a network far below protobuf's limit of 2 GB into one file.
# Behaviour: The default (external_data=True) writes <name>.onnx.data beside <name>.onnx for every size. A copy of the
#   .onnx file without the second file does not load. external_data=False writes one file.
# Output, Debian 12, Python 3.11:
#   network of 64 weights: linear.onnx + linear.onnx.data; with external_data=False: single.onnx
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import pathlib
import torch

network, x = torch.nn.Linear(8, 8, bias=False).eval(), torch.zeros(1, 8)
torch.onnx.export(network, (x,), "linear.onnx", dynamo=True, verbose=False)
torch.onnx.export(network, (x,), "single.onnx", dynamo=True, verbose=False, external_data=False)
files = {stem: sorted(path.name for path in pathlib.Path().glob(f"{stem}.onnx*")) for stem in ("linear", "single")}
print(f"network of 64 weights: {' + '.join(files['linear'])}; with external_data=False: {' + '.join(files['single'])}")
assert files == {"linear": ["linear.onnx", "linear.onnx.data"], "single": ["single.onnx"]}
EOF
