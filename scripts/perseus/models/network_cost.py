"""What one inference of a network costs, counted from its ONNX graph: operations and bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import onnx

FLOAT_BYTES: Final = 4
"""Of an element: the weights and the activations of an exported network are float32."""


@dataclass(frozen=True)
class NetworkCost:
    """Of one image.

    `flops` counts a multiplication and an addition as two; convolutions and matrix products have
    them all, other nodes one for each element that they make. `weight_bytes` are those of the
    weights. `traffic_bytes` are what the nodes read and write, each for itself, as if nothing
    stayed in a cache between them. `working_set_bytes` are the weights and the largest sum of what
    one node reads and writes beside them: what a cache would have to hold.
    """

    flops: float
    weight_bytes: float
    traffic_bytes: float
    working_set_bytes: float


def network_cost(onnx_path: Path, input_shape: Sequence[int]) -> NetworkCost:
    """The cost of one image (3, H, W). Nodes whose shapes cannot be inferred count as nothing."""
    import onnx

    model = onnx.load_model(str(onnx_path))
    weights = {each.name: tuple(each.dims) for each in model.graph.initializer}
    _for_one_image(model.graph, weights, input_shape)
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    values = (*graph.value_info, *graph.input, *graph.output)
    shapes = {**{each.name: _shape(each) for each in values}, **weights}
    flops, traffic, largest = 0.0, 0.0, 0.0
    for node in graph.node:
        activations = [
            shapes[name] for name in (*node.input, *node.output) if name in shapes.keys() - weights
        ]
        read_weights = [weights[name] for name in node.input if name in weights]
        touched = _elements(activations)
        flops += _flops(node, shapes)
        traffic += touched + _elements(read_weights)
        largest = max(largest, touched)
    of_weights = _elements(list(weights.values()))
    return NetworkCost(
        flops=flops,
        weight_bytes=FLOAT_BYTES * of_weights,
        traffic_bytes=FLOAT_BYTES * traffic,
        working_set_bytes=FLOAT_BYTES * (of_weights + largest),
    )


def _for_one_image(
    graph: onnx.GraphProto, weights: dict[str, tuple[int, ...]], input_shape: Sequence[int]
) -> None:
    """Give the input the shape of one image, and drop the shapes that were inferred without it."""
    (image,) = (each for each in graph.input if each.name not in weights)
    for dim, size in zip(image.type.tensor_type.shape.dim, (1, *input_shape), strict=True):
        dim.dim_value = size
    del graph.value_info[:]
    for output in graph.output:
        output.type.tensor_type.shape.dim[0].dim_value = 1


def _shape(value: onnx.ValueInfoProto) -> tuple[int, ...]:
    return tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)


def _elements(shapes: Sequence[Sequence[int]]) -> float:
    return float(sum(math.prod(shape) for shape in shapes))


def _flops(node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]]) -> float:
    made = math.prod(shapes.get(node.output[0], (0,)))
    if node.op_type == "Conv":
        _, *filter_shape = shapes[node.input[1]]  # (channels / groups, height, width)
        return 2.0 * made * math.prod(filter_shape)
    if node.op_type in ("Gemm", "MatMul"):
        return 2.0 * made * shapes[node.input[0]][-1]
    return float(made)
