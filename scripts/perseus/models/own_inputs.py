"""Combine the inputs that an ONNX file of the user declares with the sizes that the study sets."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perseus.models.tensors import DATATYPES, DTYPES, OPEN, TensorSpec, closings
from perseus.study.hints import did_you_mean

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Sizes:
    """Numbers that the study sets for the variable sizes of an ONNX file.

    `shape` has the sizes of each input, by the name of the input. `input_size` is the value of all
    variable sizes except the first.
    """

    shape: Mapping[str, tuple[int, ...]]
    input_size: int | None = None


def inputs_of(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs of a graph, without the weights that old ONNX files list as inputs."""
    weights = {each.name for each in graph.initializer}
    return [each for each in graph.input if each.name not in weights]


def declared(value: onnx.ValueInfoProto) -> TensorSpec:
    """Return an input or output as the ONNX file declares it. The first size may be the batch size.

    If Triton does not support the type of the tensor, `datatype` has ONNX's name of the type.
    """
    import onnx

    if value.type.WhichOneof("value") != "tensor_type":
        kind = (value.type.WhichOneof("value") or "no type").removesuffix("_type")
        return TensorSpec(value.name, kind, ())
    of = value.type.tensor_type
    names = {number: name for name, number in onnx.TensorProto.DataType.items()}
    datatype = names.get(of.elem_type, str(of.elem_type))
    if of.elem_type in names and of.elem_type != onnx.TensorProto.UNDEFINED:
        numpy_type = onnx.helper.tensor_dtype_to_np_dtype(of.elem_type)
        datatype = DATATYPES.get(numpy_type, datatype)
    sizes = (dim.dim_value for dim in of.shape.dim)
    return TensorSpec(value.name, datatype, tuple(n if n > 0 else OPEN for n in sizes))


def asked_inputs(model: onnx.ModelProto, sizes: Sizes) -> list[TensorSpec]:
    """Return the inputs of an ONNX file with the sizes that the study sets.

    If the first size of an input stays variable, it is the batch size.
    """
    return [replace(declared(each), dims=_dims(each, sizes)) for each in inputs_of(model.graph)]


def problems(model: onnx.ModelProto, sizes: Sizes) -> Iterator[str]:
    """Yield the problems of an ONNX file's inputs and outputs, and of the sizes in the study."""
    inputs = inputs_of(model.graph)
    names = [each.name for each in inputs]
    for what, values in (("input", inputs), ("output", list(model.graph.output))):
        if not values:
            yield f"it has no {what}s"
        for name, count in Counter(each.name for each in values).items():
            if count > 1:
                yield f"{count} of its {what}s have the name {name!r}"
        for each in values:
            if (datatype := declared(each).datatype) not in DTYPES:
                yield (
                    f"its {what} {each.name!r} is of type {datatype}, but Perseus supports only"
                    f" {', '.join(DTYPES)}"
                )
    for name in sizes.shape:
        if name not in names:
            hint = did_you_mean(name, names) or f" (it has {', '.join(names)})"
            yield f"shape: {name!r} is not an input of the file{hint}"
    yield from _size_problems(inputs, sizes)
    if sizes.input_size and not any(_has_size(each, sizes.input_size) for each in inputs):
        given = ", ".join(_described(each) for each in inputs)
        yield (
            f"input_size: in the inputs {given}, no size after the first can be"
            f" {sizes.input_size}. Remove input_size"
        )


def _size_problems(inputs: Sequence[onnx.ValueInfoProto], sizes: Sizes) -> Iterator[str]:
    has_batch = common_size([_dims(each, sizes) for each in inputs]) is not None
    open_inputs = []
    for each in inputs:
        given, dims = sizes.shape.get(each.name), _dims(each, sizes)
        if given is not None and not _fillings(each, given):
            has = _described(each)
            yield (
                f"shape: {each.name!r}: the sizes {list(given)} contradict the input of the file,"
                f" {has}"
            )
        elif OPEN in dims[has_batch:] or not _has_shape(each):
            open_inputs.append(each)
    if not open_inputs:
        return
    named = " and ".join(_described(each) for each in open_inputs)
    line = ", ".join(
        f"{_key(each.name)}: [{', '.join(_wanted(each, has_batch)) or 'sizes'}]"
        for each in open_inputs
    )
    verb = "has" if len(open_inputs) == 1 else "have"
    yield (
        f"its input{'s' * (len(open_inputs) > 1)} {named} {verb} variable sizes: write shape:"
        f" {{{line}}} with numbers for these sizes"
    )


def _wanted(value: onnx.ValueInfoProto, has_batch: bool) -> list[str]:
    """Return the names of the variable sizes of an input. A size without a name is called "size".

    If `has_batch` is true, the result does not include the first size.
    """
    sizes = zip(value.type.tensor_type.shape.dim, declared(value).dims, strict=True)
    return [
        dim.dim_param if re.fullmatch(r"[^\W\d]\w*", dim.dim_param) else "size"
        for dim, size in list(sizes)[has_batch:]
        if size == OPEN
    ]


def common_size(dims: Iterable[Sequence[int]]) -> int | None:
    """Return the first size that all inputs have in common; None if their first sizes differ.

    The result is 1 if the first size is variable.
    """
    sizes = {each[0] if each else None for each in dims}
    if sizes <= {OPEN, 1}:
        return 1
    return sizes.pop() if len(sizes) == 1 else None


def _key(name: str) -> str:
    """Return a name as a key of YAML, in quotation marks if necessary."""
    return name if re.fullmatch(r"[A-Za-z_][\w./-]*", name) else json.dumps(name)


def _dims(value: onnx.ValueInfoProto, sizes: Sizes) -> tuple[int, ...]:
    """Return the sizes of an input, with the numbers that the study sets.

    Sizes that neither the file nor the study states stay variable.
    """
    given = sizes.shape.get(value.name)
    if given is not None:
        return next(iter(_fillings(value, given)), declared(value).dims)
    dims = declared(value).dims
    if sizes.input_size is None:
        return dims
    return (*dims[:1], *(sizes.input_size if size == OPEN else size for size in dims[1:]))


def _fillings(value: onnx.ValueInfoProto, given: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the possible shapes of an input for which the study sets the sizes `given`.

    `given` has either all sizes of the input, or only its variable sizes. In both cases, the first
    size of the input may be missing in `given`.
    """
    dims = declared(value).dims
    if not _has_shape(value):
        return [(OPEN, *given)]
    behind = [(dims[0], *rest) for rest in closings(dims[1:], given)] if dims else []
    return [*behind, *closings(dims, given)]


def _has_shape(value: onnx.ValueInfoProto) -> bool:
    return value.type.tensor_type.HasField("shape")


def _has_size(value: onnx.ValueInfoProto, size: int) -> bool:
    """Return whether a size of the input, after the first size, can be `size`."""
    return any(each in (OPEN, size) for each in declared(value).dims[1:])


def _described(value: onnx.ValueInfoProto) -> str:
    if not _has_shape(value):
        return f"{value.name!r} {declared(value).datatype} without a declared shape"
    return str(declared(value))
