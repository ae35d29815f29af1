"""ONNX files of small networks, as users provide them."""

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
    """Return a network of a pooling, a flattening and a matrix product.

    If `by` is a number, the Reshape node has the constant batch size `by`. The output has `ones`
    more dimensions of size 1 at its end. The output declares the batch and the sizes `declared`; if
    `declared` is None, the output declares no shape.
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
        helper.make_node("MatMul", ["flat", "w"], ["input"]),  # Perseus uses this name itself
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


def with_nodes(model, *nodes):
    """Return the network with these nodes instead of its last node."""
    model.graph.node.pop()
    model.graph.node.extend(nodes)
    return model


def time_first():
    """Return a text recogniser: the second of the three axes of its output is the batch.

    The output declares only two axes.
    """
    model = with_nodes(
        network(1, ones=1),
        helper.make_node("Unsqueeze", ["input", "ends"], ["columns"]),
        helper.make_node("Transpose", ["columns"], ["scores"], perm=[1, 0, 2]),
    )
    model.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, "seqlen"])
    )
    return model


def of_all_types():
    """Return a network with inputs and outputs of several types and ranks.

    The names of the inputs, such as `gpu_0/data_0`, resemble names in public ONNX files.
    """
    numbers = {"gpu_0/data_0": TensorProto.INT64, "mask:0": TensorProto.BOOL}
    given = [helper.make_tensor_value_info(name, kind, ["n", 4]) for name, kind in numbers.items()]
    half, double, byte = TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.UINT8
    kinds = {"half": half, "double": double, "byte": byte}
    nodes = [
        helper.make_node("Cast", ["mask:0"], ["ones"], to=TensorProto.INT64),
        helper.make_node("Mul", ["gpu_0/data_0", "ones"], ["product"]),
        *(helper.make_node("Cast", ["product"], [name], to=kind) for name, kind in kinds.items()),
        helper.make_node("ArgMax", ["product"], ["class"], axis=1, keepdims=0),
        helper.make_node("Not", ["mask:0"], ["not"]),
    ]
    kinds |= {"class": TensorProto.INT64, "not": TensorProto.BOOL}
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()]
    graph = helper.make_graph(nodes, "types", given, made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def of_scalar():
    """Return a network that multiplies its scores by a scalar input."""
    model = with_nodes(network(1), helper.make_node("Mul", ["input", "times"], ["scores"]))
    model.graph.input.append(helper.make_tensor_value_info("times", TensorProto.FLOAT, []))
    return model


def detector():
    """Return a detector with a threshold above all scores, which finds no boxes."""
    model = with_nodes(
        network(1),
        helper.make_node("Greater", ["input", "high"], ["found"]),
        helper.make_node("NonZero", ["found"], ["places"]),
        helper.make_node("Transpose", ["places"], ["scores"]),
    )
    model.graph.initializer.append(numpy_helper.from_array(np.float32([1e9]), "high"))
    model.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("scores", TensorProto.INT64, ["found", 2])
    )
    return model


def recurrent(first="n", state=1, squeezed=False):
    """Return a network that adds the sum of the rows of `state` to the rows of `x`.

    `first` and `state` are the sizes of the first dimensions of `x` and `state`. If `squeezed` is
    true, the network has a branch that no request takes. ONNX Runtime refuses this branch if the
    first dimension of `x` has the size 1.
    """
    nodes = [
        helper.make_node("ReduceSum", ["state"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["added"]),
    ]
    weights = [numpy_helper.from_array(np.array(False), "never")]
    branches = {}
    for name, inner in {
        "then_branch": [
            helper.make_node("Squeeze", ["added"], ["row"]),
            helper.make_node("Transpose", ["row"], ["then"], perm=[1, 0]),
        ],
        "else_branch": [helper.make_node("Identity", ["added"], ["else"])],
    }.items():
        made = helper.make_tensor_value_info(inner[-1].output[0], FLOAT, None)
        branches[name] = helper.make_graph(inner, name, [], [made])
    last = (
        helper.make_node("If", ["never"], ["y"], **branches)
        if squeezed
        else helper.make_node("Identity", ["added"], ["y"])
    )
    given = [
        helper.make_tensor_value_info("x", FLOAT, [first, "width"]),
        helper.make_tensor_value_info("state", FLOAT, [state, "units"]),
    ]
    y = helper.make_tensor_value_info("y", FLOAT, None)
    graph = helper.make_graph([*nodes, last], "recurrent", given, [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
