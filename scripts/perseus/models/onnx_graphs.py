"""Read and edit ONNX graphs, including the graphs inside their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from perseus.study.model import Precision

if TYPE_CHECKING:
    import onnx


def inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yield the graphs inside a node: the branches of an If, or the body of a Loop or a Scan."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yield a graph and all graphs inside its nodes, at any depth."""
    yield graph
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from all_graphs(inner)


def stored_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield all weights and constants of a model, also those inside the functions of the model."""
    nodes: list[onnx.NodeProto] = []
    graphs = list(all_graphs(model.graph))
    for function in model.functions:
        nodes.extend(function.node)
        graphs.extend(inner for node in function.node for inner in _graphs_in(node))
    for graph in graphs:
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        nodes.extend(graph.node)
    for attribute in (each for node in nodes for each in node.attribute):
        yield from (attribute.t, *attribute.tensors)
        for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
            yield from (sparse.values, sparse.indices)


def _graphs_in(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for inner in inner_graphs(node):
        yield from all_graphs(inner)


def give_dimensions(model: onnx.ModelProto) -> None:
    """Convert inputs and outputs without dimensions (single numbers) into tensors of size one.

    The conversion is necessary because Triton cannot serve values without dimensions. The function
    changes the model in place.
    """
    from onnx import helper, numpy_helper

    graph = model.graph
    weights = {each.name for each in graph.initializer}
    given = [each for each in graph.input if each.name not in weights and _is_number(each)]
    made = [each for each in graph.output if _is_number(each)]
    if not given and not made:
        return
    inside = {each.name: f"{each.name}{WITHOUT}" for each in (*given, *made)}
    for each in graph.initializer:  # an output may be a constant
        each.name = inside.get(each.name, each.name)
    for of in all_graphs(graph):
        for node in of.node:
            node.input[:] = [inside.get(name, name) for name in node.input]
            node.output[:] = [inside.get(name, name) for name in node.output]
        if of is not graph:
            for value in of.output:
                value.name = inside.get(value.name, value.name)
    shapes = {f"no{WITHOUT}": np.array([], np.int64), f"one{WITHOUT}": np.array([1], np.int64)}
    graph.initializer.extend(numpy_helper.from_array(of, name) for name, of in shapes.items())
    before, after = shapes
    nodes = [
        *(helper.make_node("Reshape", [of.name, before], [inside[of.name]]) for of in given),
        *graph.node,
        *(helper.make_node("Reshape", [inside[of.name], after], [of.name]) for of in made),
    ]
    del graph.node[:]
    graph.node.extend(nodes)
    for value in (*given, *made):
        value.type.tensor_type.shape.dim.add().dim_value = 1


def _is_number(value: onnx.ValueInfoProto) -> bool:
    of = value.type.tensor_type
    return value.type.HasField("tensor_type") and of.HasField("shape") and not of.shape.dim


WITHOUT: Final = "/without dimensions"
"""Suffix of new names in `give_dimensions`. Requests and responses use the old name of an input or
output, which is now a tensor of size one. The number without dimensions gets a new name."""


QUANTISED: Final = ("Quantize", "QLinear", "Integer", "DynamicQuantize")
"""The name of each operator on quantised numbers begins or ends with one of these words."""


def precision_inside(model: onnx.ModelProto) -> Precision:
    """Return the lowest numeric precision that occurs in an ONNX model.

    The function derives the precision from the operators of the model, and from the types of its
    weights and constants.
    """
    import onnx

    bodies = [function.node for function in model.functions]
    bodies += [graph.node for graph in all_graphs(model.graph)]
    operators = {node.op_type for body in bodies for node in body}
    if any(name.startswith(QUANTISED) or name.endswith(QUANTISED) for name in operators):
        return "int8"
    kinds = {tensor.data_type for tensor in stored_tensors(model)}
    if onnx.TensorProto.BFLOAT16 in kinds:
        return "bf16"
    return "fp16" if onnx.TensorProto.FLOAT16 in kinds else "fp32"
