#!/usr/bin/env bash
# torch.onnx.export(dynamo=False) of torch 2.13.0 puts a network that was set to eval() into training mode.
#
# Expected: After the export, each module of the caller is in the same mode as before.
# Behaviour: The export notes the mode of the outermost module only, and afterwards sets this mode for all inner
#   modules. A wrapper without a call of eval() is in training mode, so the network inside it is in training mode after
#   the export. The file is right, but from then on the network in memory returns other outputs, at random if it has
#   Dropout. A comparison of the file with the network after the export then seems to show a wrong file. dynamo=True
#   keeps the mode of each module.
# Output, Debian 12, Python 3.11:
#   dynamo=False: network in training mode: before False, after True; file as before: True; network as before: False
#   dynamo=True: network in training mode: before False, after False; file as before: True; network as before: True
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOF'
import warnings
import numpy as np, onnxruntime, torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
images = torch.randn(8, 3, 4, 4)


class Wrapper(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x)


def export(is_dynamo, **more):
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Flatten(), nn.Linear(16, 2)).eval()
    before, mode = network(images).detach().numpy(), network.training
    torch.onnx.export(Wrapper(network), (images,), "network.onnx", dynamo=is_dynamo, input_names=["x"], **more)
    after = network(images).detach().numpy()
    file = onnxruntime.InferenceSession("network.onnx").run(None, {"x": images.numpy()})[0]
    found = [bool(np.allclose(answer, before, atol=1e-5)) for answer in (file, after)]
    print("dynamo={}: network in training mode: before {}, after {}; file as before: {}; network as before: {}".format(
        is_dynamo, mode, network.training, *found))
    return mode, network.training, *found


assert export(False) == (False, True, True, False)
assert export(True, verbose=False) == (False, False, True, True)
EOF
