#!/usr/bin/env bash
# onnxslim 0.1.98 and onnxsim 0.8.1 merge two independent random operators into one.
#
# Expected: A simplifier keeps the distribution of the outputs. The difference of two RandomNormalLike of the same shape
#   has a standard deviation of 1.4.
# Behaviour: Both simplifiers take the two operators for a common subexpression, because both have the same inputs and
#   attributes. One operator remains, and the difference is 0. onnxsim reports that its check succeeded. ONNX Runtime
#   does not merge the operators. In a network with several random noises, for example for speech synthesis, the noises
#   are then no longer independent. If the operators have different attributes `seed`, both simplifiers keep both
#   operators.
# Output, Debian 12, Python 3.11:
#   standard deviation of the difference: 1.4; after onnxslim 0.0, after onnxsim 0.0; with seeds 1.4, 1.4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q onnxslim==0.1.98 onnxsim==0.8.1 onnx==1.23.2 onnxruntime==1.31.1 numpy==2.4.6
cd "$folder"
venv/bin/python - 2>log <<'EOS'
import numpy as np, onnxruntime, onnxsim, onnxslim
from onnx import TensorProto, helper

onnxruntime.set_default_logger_severity(4)


def network(**seeds):
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], [name], **({"seed": seeds[name]} if seeds else {}))
        for name in ("first", "second")
    ]
    graph = helper.make_graph(
        [*nodes, helper.make_node("Sub", ["first", "second"], ["y"])], "noise",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [10000])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [10000])],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])


def deviation(model):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return float(session.run(None, {"x": np.zeros(10000, np.float32)})[0].std())


def simplified(model):
    by_onnxsim, checked = onnxsim.simplify(model)
    assert checked
    return deviation(onnxslim.slim(model)), deviation(by_onnxsim)


before = deviation(network())
slim, sim = simplified(network())
seeded_slim, seeded_sim = simplified(network(first=1.0, second=2.0))
print(f"standard deviation of the difference: {before:.1f}; after onnxslim {slim:.1f}, after onnxsim {sim:.1f}; "
      f"with seeds {seeded_slim:.1f}, {seeded_sim:.1f}")
assert before > 1.3 and slim == sim == 0 and min(seeded_slim, seeded_sim) > 1.3
EOS
