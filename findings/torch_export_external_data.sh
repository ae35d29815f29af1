#!/usr/bin/env bash
# torch.onnx.export of torch 2.13.0 writes the weights of a tiny network into a second file.
#
# Guess: a network far below the 2 GB limit of protobuf is one file.
# Behaviour: the default (external_data=True) writes <name>.onnx.data beside <name>.onnx, whatever the size. Who copies
#   only the .onnx has a network that does not load. external_data=False writes one file.
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
