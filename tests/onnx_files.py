"""ONNX files as users bring them, of a network that is small."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, CLASSES = TensorProto.FLOAT, 5


def network(
    batch="n",
    pixels=(32, 32),
    channels=3,
    kind=FLOAT,
    more_inputs=(),
    more_outputs=(),
    by=None,
    ones=0,
    declared=(CLASSES,),
):
    """A pooling, a flattening and a matrix.

    `by` is the constant batch that it is reshaped to; answers end in so many `ones`, and are of the
    sizes that are `declared` beside the batch, None for no shape at all.
    """
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.normal(size=(channels, CLASSES)).astype(np.float32), "w"),
        numpy_helper.from_array(np.array([by or -1, channels]), "shape"),
        numpy_helper.from_array(np.arange(2, 2 + ones), "ends"),
    ]
    dtype = {FLOAT: [], TensorProto.FLOAT16: [helper.make_node("Cast", ["x"], ["x32"], to=FLOAT)]}
    nodes = [
        *dtype[kind],
        helper.make_node("GlobalMaxPool", ["x" if kind == FLOAT else "x32"], ["pooled"]),
        helper.make_node("Reshape", ["pooled", "shape"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["input"]),  # a name that is ours otherwise
        helper.make_node("Unsqueeze", ["input", "ends"], ["scores"]),
        *(helper.make_node("Identity", ["input"], [name]) for name in more_outputs),
    ]
    image = helper.make_tensor_value_info("x", kind, [batch, channels, *pixels])
    others = [helper.make_tensor_value_info(name, FLOAT, [1]) for name in more_inputs]
    made = [
        helper.make_tensor_value_info(name, FLOAT, declared and [batch, *declared])
        for name in ("scores", *more_outputs)
    ]
    graph = helper.make_graph(nodes, "own", [image, *others], made, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
