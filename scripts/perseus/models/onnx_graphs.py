"""The graphs that an ONNX graph has inside of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The branches of an If, the body of a Loop or a Scan."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_graphs(
    outermost: onnx.GraphProto | onnx.FunctionProto,
) -> Iterator[onnx.GraphProto | onnx.FunctionProto]:
    """A graph, or what a function of a model does, and all graphs in its nodes, at any depth."""
    yield outermost
    for node in outermost.node:
        for inner in inner_graphs(node):
            yield from all_graphs(inner)
