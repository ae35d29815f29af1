"""An ONNX graph and those that it has inside of its nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The branches of an If, the body of a Loop or a Scan."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and those in its nodes, at any depth."""
    yield graph
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from all_graphs(inner)


def stored_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """All weights and constants of a model, those of its functions included."""
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


def rename_values(graph: onnx.GraphProto, names: Collection[str]) -> None:
    """Have no value of a graph one of these names, in place.

    A value keeps one name in all graphs inside, which name what is outside of them.
    """
    graphs = list(all_graphs(graph))
    taken = {name for of in graphs for node in of.node for name in (*node.input, *node.output)}
    prefix = "own/"
    while not taken.isdisjoint(prefix + name for name in names):
        prefix += "own/"
    renamed = {name: prefix + name for name in names}
    for of in graphs:
        values = (*of.input, *of.output, *of.value_info)
        weights = (*of.initializer, *(each.values for each in of.sparse_initializer))
        for value in values:
            value.name = renamed.get(value.name, value.name)
        for weight in weights:
            weight.name = renamed.get(weight.name, weight.name)
        for node in of.node:
            node.input[:] = [renamed.get(name, name) for name in node.input]
            node.output[:] = [renamed.get(name, name) for name in node.output]
