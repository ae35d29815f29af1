#!/usr/bin/env bash
# A network of ddddocr 1.6.1 declares an output of rank 2 and returns an output of rank 3.
#
# Expected: The output of an ONNX file that passes onnx.checker has the declared rank, for every size of the input.
# Behaviour: common.onnx declares (1, seqlen). ONNX Runtime returns (seqlen, 1, 8210) and logs a warning. The checker
#   finds no error, even with full_check. A server that is configured by the declaration refuses this output. Run a
#   network once before you serve it.
# Output, Debian 12, Python 3.11:
#   checker: passes; declared rank: 2; answered: (20, 1, 8210)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
"$folder/venv/bin/pip" install -q --no-deps ddddocr==1.6.1
cd "$folder"
venv/bin/python - 2>log <<'EOS'
import importlib.metadata

import numpy as np
import onnx
import onnxruntime

files = importlib.metadata.files("ddddocr")
path = str(next(each.locate() for each in files if each.name == "common.onnx"))
onnx.checker.check_model(path, full_check=True)
session = onnxruntime.InferenceSession(path)
(image,), (output,) = session.get_inputs(), session.get_outputs()
letters = np.random.default_rng(0).normal(size=(1, 1, 64, 160)).astype(np.float32)
(answer,) = session.run(None, {image.name: letters})
print(f"checker: passes; declared rank: {len(output.shape)}; answered: {answer.shape}")
assert len(output.shape) == 2 and answer.ndim == 3
EOS
