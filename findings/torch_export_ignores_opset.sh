#!/usr/bin/env bash
# torch.onnx.export of torch 2.13.0 may write another opset than the requested opset, with a warning only.
#
# Expected: With opset_version=17, the file has opset 17, or the export raises an error.
# Behaviour: The exporter makes opset 18 and converts it to the requested opset. If one operator has no conversion, the
#   file keeps opset 18 and the export succeeds. Here this operator is the mean behind AdaptiveAvgPool2d, a part of most
#   CNNs. Read opset_import of the file.
# Output, Debian 12, Python 3.11:
#   requested opset 17; the file has opset 18
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 numpy==2.4.6
cd "$folder"
venv/bin/python - 2>warnings <<'EOF'
import onnx, torch

network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()).eval()
torch.onnx.export(network, (torch.zeros(2, 3, 32, 32),), "cnn.onnx", dynamo=True, verbose=False, opset_version=17)
opset = onnx.load("cnn.onnx").opset_import[0].version
print(f"requested opset 17; the file has opset {opset}")
assert opset == 18
EOF
