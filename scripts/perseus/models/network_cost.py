"""Count the operations and bytes of one inference of a neural network from its ONNX graph."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perseus.models.onnx_graphs import inner_graphs
from perseus.models.tensors import ModelTensors

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class NetworkCost:
    """Operations and bytes of one inference, for one example such as an image.

    `flops` is the number of operations: one multiplication and one addition count as two
    operations. For convolutions and matrix products, `flops` counts all operations. For any other
    node, `flops` counts one operation per element of the first output. `weight_bytes` is the size
    of the weights in the ONNX file. `traffic_bytes` is the number of bytes that all nodes read and
    write if no data is cached between nodes. `operators` is the number of nodes.

    `working_set_bytes` is the size of all weights, plus the largest size of the activations
    (intermediate results) that a single node reads and writes. A cache of `working_set_bytes` can
    keep all weights, and the activations of one node after the other, if the network has no
    branches.
    """

    flops: float
    weight_bytes: float
    traffic_bytes: float
    working_set_bytes: float
    operators: int


@dataclass(frozen=True)
class _Tensor:
    shape: tuple[int, ...]
    size_bytes: int
    is_weight: bool


LEFT_OUT: Final = {"": _Tensor((0,), 0, is_weight=False)}
"""In ONNX, the empty name means an optional input or output that a node does not use."""


def network_cost(onnx_path: Path, tensors: ModelTensors) -> NetworkCost:
    """Return the number of operations and bytes of one inference, for one example.

    `tensors` has the inputs and outputs of the ONNX file. If onnx cannot infer a shape, the counts
    are too low: the function counts no operations for a node with an unknown shape, and no bytes
    for a tensor of unknown shape. The function counts both branches of an If node, and one
    iteration of a loop.
    """
    import onnx
    from onnx.inliner import inline_local_functions

    model = onnx.load_model(str(onnx_path))
    if model.functions:
        model = inline_local_functions(model)
    _for_one_example(model.graph, tensors)
    # onnx raises this error if the declared shapes contradict the nodes. Then the other shapes stay
    # unknown.
    with contextlib.suppress(onnx.shape_inference.InferenceError):
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    graph = model.graph
    flops, traffic, largest, of_weights, operators = 0.0, 0.0, 0.0, 0.0, 0
    for inner, known in _scopes(graph, LEFT_OUT):
        of_weights += _bytes(each for each in _tensors(inner).values() if each.is_weight)
        for node in inner.node:
            if node.op_type == "Constant":
                continue  # its bytes count at the nodes that read the constant
            operators += 1
            touched = [known[name] for name in (*node.input, *node.output) if name in known]
            flops += _flops(node, known)
            traffic += _bytes(touched)
            largest = max(largest, _bytes(each for each in touched if not each.is_weight))
    return NetworkCost(
        flops=flops,
        weight_bytes=of_weights,
        traffic_bytes=traffic,
        working_set_bytes=of_weights + largest,
        operators=operators,
    )


def _for_one_example(graph: onnx.GraphProto, tensors: ModelTensors) -> None:
    """Set the shapes of the inputs to the shapes of one example, and remove all inferred shapes."""
    before = (1,) if tensors.has_batches else ()
    shapes = {each.name: (*before, *each.dims) for each in tensors.inputs}
    shapes |= {each.name: before for each in graph.output}
    for value in (*graph.input, *graph.output):
        dims = value.type.tensor_type.shape.dim
        for dim, size in zip(dims, shapes.get(value.name, ()), strict=False):
            dim.dim_value = size
    del graph.value_info[:]


def _scopes(
    graph: onnx.GraphProto, outer: Mapping[str, _Tensor]
) -> Iterator[tuple[onnx.GraphProto, dict[str, _Tensor]]]:
    """Yield a graph and all graphs inside its nodes, each with the tensors that it can read."""
    tensors = {**outer, **_tensors(graph)}
    yield graph, tensors
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from _scopes(inner, tensors)


def _tensors(graph: onnx.GraphProto) -> dict[str, _Tensor]:
    """Return the tensors of known shape in a graph, by name, but not those of inner graphs."""
    constants = {name for node in graph.node if node.op_type == "Constant" for name in node.output}
    typed = [
        (each.name, each.type.tensor_type)
        for each in (*graph.value_info, *graph.input, *graph.output)
    ]
    inferred = {
        name: _tensor([dim.dim_value for dim in of.shape.dim], of.elem_type, name in constants)
        for name, of in typed
        if of.elem_type and of.HasField("shape")
    }
    # Count sparse weights as dense ones, because runtimes convert them into dense ones.
    sparse = [(each.values.name, each.dims, each.values) for each in graph.sparse_initializer]
    stored = [*((each.name, each.dims, each) for each in graph.initializer), *sparse]
    return {
        **inferred,
        **{name: _tensor(dims, of.data_type, is_weight=True) for name, dims, of in stored},
    }


def _tensor(shape: Sequence[int], data_type: int, is_weight: bool) -> _Tensor:
    """Return a tensor. A size of 0 in `shape` means an unknown size."""
    from onnx.helper import tensor_dtype_to_np_dtype

    element_bytes = tensor_dtype_to_np_dtype(data_type).itemsize
    return _Tensor(tuple(shape), math.prod(shape) * element_bytes, is_weight)


def _bytes(tensors: Iterable[_Tensor]) -> float:
    return float(sum(each.size_bytes for each in tensors))


def _flops(node: onnx.NodeProto, tensors: Mapping[str, _Tensor]) -> float:
    if not all(name in tensors for name in (*node.input, *node.output)):
        return 0.0
    shapes = [tensors[name].shape for name in node.input]
    made = float(math.prod(tensors[node.output[0]].shape))
    if node.op_type == "Conv":
        _, *filter_shape = shapes[1]  # (channels / groups, height, width)
        return 2 * made * math.prod(filter_shape)
    if node.op_type == "ConvTranspose":
        read, (_, *filter_shape) = math.prod(shapes[0]), shapes[1]
        return 2.0 * read * math.prod(filter_shape)  # (output channels / groups, height, width)
    if node.op_type == "MatMul":
        return 2 * made * shapes[0][-1]
    if node.op_type == "Gemm":
        return 2 * made * shapes[0][0 if _attribute(node, "transA", 0) else -1]
    if node.op_type == "Einsum":
        return 2 * made * _summed(_attribute(node, "equation", b"").decode(), shapes)
    return made


def _summed(equation: str, shapes: Sequence[Sequence[int]]) -> int:
    """Return how many products the operator Einsum adds up for each element of its output."""
    read, arrow, made = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for labels, shape in zip(read.split(","), shapes, strict=True):
        first, _, last = labels.partition("...")
        sizes |= dict(zip(first, shape, strict=False))
        sizes |= dict(zip(reversed(last), reversed(shape), strict=False))
    kept = made if arrow else [label for label in sizes if read.count(label) == 1]
    return math.prod(size for label, size in sizes.items() if label not in kept)


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    from onnx.helper import get_attribute_value

    return next(
        (get_attribute_value(each) for each in node.attribute if each.name == name), default
    )
