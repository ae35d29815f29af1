#!/usr/bin/env bash
# With CACHE_DIR, OpenVINO 2026.4.1 computes with old weights after the file of the weights was replaced.
#
# Expected: The cache of compiled networks depends on the weights, so new weights give new outputs.
# Behaviour: For a network in two files (.onnx and external data, or .xml and .bin), compile_model(path) looks only at
#   the first file. If training changed only the weights, a tool that copies changed files replaces only the second
#   file. OpenVINO then loads the old compiled network from the cache, without a warning. Empty the cache after each
#   change, or pass core.read_model(path) to compile_model: its result depends on the weights.
# Output on an AMD EPYC, Debian 12, Python 3.11:
#   .onnx and data: weights of 1 give 4, weights of 2 give 4; .xml and .bin: 4, 4; with read_model: 4, 8
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q openvino==2026.4.1 onnx==1.23.2 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'EOS'
import pathlib
import numpy as np, onnx, openvino
from onnx import TensorProto, helper, numpy_helper

ones = np.ones((1, 4), np.float32)


def write(name, weight):
    """Write one network as name.onnx with name.data, and as name.xml with name.bin."""
    weights = numpy_helper.from_array(np.full((4, 4), weight, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [weights],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    openvino.save_model(openvino.Core().read_model(model.SerializeToString()), f"{name}.xml", compress_to_fp16=False)
    onnx.save(model, f"{name}.onnx", save_as_external_data=True, location="net.data", size_threshold=0)


def answer(file, cache, *, read=False):
    core = openvino.Core()
    core.set_property({"CACHE_DIR": cache})
    return core.compile_model(core.read_model(file) if read else file, "CPU")(ones)[0][0, 0]


def answers():
    return [answer("net.onnx", "a"), answer("net.xml", "b"), answer("net.onnx", "c", read=True)]


pathlib.Path("new").mkdir()
write("new/net", 2)
write("net", 1)
first = answers()
for file in ("net.onnx", "net.xml"):
    assert pathlib.Path("new", file).read_bytes() == pathlib.Path(file).read_bytes()
for weights in ("net.data", "net.bin"):
    pathlib.Path("new", weights).rename(weights)
second = answers()
onnx_files, openvino_files, read = (f"{a:.0f}, {b:.0f}" for a, b in zip(first, second))
print(f".onnx and data: weights of 1 give {first[0]:.0f}, weights of 2 give {second[0]:.0f}; "
      f".xml and .bin: {openvino_files}; with read_model: {read}")
assert first == [4, 4, 4] and second == [4, 4, 8]
EOS
