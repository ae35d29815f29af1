"""Prepare an ONNX file of the user for Triton, and check that its responses do not change.

This module runs the model only in ONNX Runtime, because ONNX Runtime never executes program code
from a model file.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from perseus.host.files import whole
from perseus.models.answers import TOLERANCES
from perseus.models.external_data import (
    load_external_data,
    require_data_beside,
    sha256_with_data,
)
from perseus.models.networks import ExportError
from perseus.models.onnx_export import MAX_IR_VERSION, compared, keep_answers
from perseus.models.onnx_graphs import all_graphs, give_dimensions, precision_inside
from perseus.models.onnx_network import OnnxNetwork, OnnxRuntimeError
from perseus.models.own_examples import are_whole_inputs, example_problems, own_examples
from perseus.models.own_inputs import Sizes, asked_inputs, common_size, inputs_of, problems
from perseus.models.reference import Reference
from perseus.models.tensors import DATATYPES, DTYPES, OPEN, ModelTensors, Tensor, TensorSpec
from perseus.study.model import Precision
from perseus.study.tasks.own_examples import OwnExamples
from perseus.study.tasks.own_onnx import OwnOnnxTask

if TYPE_CHECKING:
    import onnx

FIXED_BATCH: Final = (
    "ONNX Runtime cannot run the model with a batch size other than {size}. To export a PyTorch"
    " network with a variable batch size, call torch.onnx.export with"
    ' dynamic_shapes=({{0: "batch"}},)'
)

Examples = Mapping[str, Tensor]
"""Examples of each input by name, shape (n, *dims)."""


def take_onnx(
    task: OwnOnnxTask,
    source: Path,
    onnx_path: Path,
    reference_path: Path,
    what: str = "",
    sorted_by: str = "",
) -> dict[str, Any]:
    """Prepare the ONNX file `source` for Triton, and write the result to `onnx_path`.

    The function also writes the file `reference_path`, with examples and the responses of the model
    to these examples. It returns the export record (the content of check.json).

    `what` is the name of the model in messages, by default the path of `source`. `sorted_by` is the
    name of the output with the scores of a detection network (see `Reference`).

    Inputs and outputs keep their names. The sizes in the task replace the variable sizes of the
    inputs. If the responses of the model to a batch equal its responses to single examples, up to
    rounding, the written file has a variable batch size. Otherwise, a request has only one example,
    and `notes` in the record says why the model does not support batches.

    Raises ExportError for each problem that `own_problems` finds, and for a file that ONNX Runtime
    cannot run. Also raises ExportError if two responses to the same request differ, unless
    `task.deterministic` is false.
    """
    model, sizes, what = read_onnx(source), Sizes(task.shape, task.input_size), what or str(source)
    if wrong := list(problems(model, sizes)):
        raise ExportError("; ".join(f"{what}: {problem}" for problem in wrong))
    load_external_data(model, source)
    inputs = asked_inputs(model, sizes)
    size = _batch_size(inputs, task.examples)
    rows = _rows_of(inputs, size)
    given = own_examples(task.examples, rows, task.seed)
    whole_inputs = [replace(each, dims=(size, *each.dims)) for each in rows] if size else inputs
    _, network = _served(model, whole_inputs, what)
    asked = _grouped(given, size) if size else given
    reference = replace(
        _reference(network, asked, task, precision_inside(model), what), sorted_by=sorted_by
    )
    notes = list(_notes(reference, what))
    with whole(onnx_path) as onnx_file, whole(reference_path) as npz:
        try:
            batched = _rows(reference, given, size)
            tensors, check = _write(model, rows, batched, onnx_file, what)
            reference = batched
        except ExportError as error:
            fixed = isinstance(error, OnnxRuntimeError)
            why = FIXED_BATCH.format(size=size) if fixed else str(error)
            notes.insert(
                0, f"{what} does not support batches, so each request has one example: {why}"
            )
            tensors, check = _write(model, whole_inputs, reference, onnx_file, what)
        kept = keep_answers(onnx_file, tensors, reference, npz)
    return {
        "source_sha256": sha256_with_data(source),
        "images": list(task.examples.images),
        "examples": task.examples.plain(),
        "precision": reference.precision,
        "is_deterministic": reference.is_deterministic,
        "notes": notes,
        **check,
        **kept,
    }


def own_problems(source: Path, sizes: Sizes, asked: OwnExamples) -> Iterator[str]:
    """Yield the problems of an ONNX file, of the sizes in the study, and of the examples.

    The function does not run the model. Raises ExportError if the file cannot be read or loaded in
    ONNX Runtime.
    """
    model = read_onnx(source)
    if wrong := list(problems(model, sizes)):
        yield from (f"onnx: {source}: {problem}" for problem in wrong)
        return
    inputs = asked_inputs(model, sizes)
    yield from example_problems(asked, _rows_of(inputs, _batch_size(inputs, asked)))
    if importlib.util.find_spec("onnxruntime"):
        load_external_data(model, source)
        OnnxNetwork(model.SerializeToString(), str(source))


def read_onnx(source: Path) -> onnx.ModelProto:
    """Read an ONNX file without its external data (weights in other files).

    Inputs and outputs without dimensions (single numbers) become tensors of size one. External data
    must be in the folder of the ONNX file. Raises ExportError if the ONNX file cannot be read.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        # Without `format`, onnx derives the format from the name of the file.
        model = onnx.load_model(str(source), format="protobuf", load_external_data=False)
    except DecodeError as error:
        raise ExportError(f"{source} is not an ONNX file, or is incomplete") from error
    except OSError as error:
        raise ExportError(f"{source} cannot be read: {error.strerror}") from error
    if not model.graph.node:
        raise ExportError(f"{source} is not an ONNX file")
    require_data_beside(model, source)
    give_dimensions(model)
    return model


def _batch_size(inputs: Sequence[TensorSpec], examples: OwnExamples) -> int | None:
    """Return the batch size: the first size that all inputs have in common.

    The result is None if the first sizes differ, or if each example includes the first dimension.
    """
    if are_whole_inputs(examples, inputs):
        return None
    return common_size([each.dims for each in inputs])


def _rows_of(inputs: Sequence[TensorSpec], size: int | None) -> list[TensorSpec]:
    """Return the inputs of one example.

    If the batch size `size` is not None, these are the inputs of the model without the first size.
    """
    return [replace(each, dims=each.dims[1:]) if size else each for each in inputs]


def _grouped(given: Examples, size: int) -> Examples:
    """For each of the n examples in `given`, return a batch of `size` examples.

    Batch i has the examples i, i + 1, ..., i + `size` - 1 (modulo n).
    """
    count = len(next(iter(given.values())))
    rows = [[(i + j) % count for j in range(size)] for i in range(count)]
    return {name: values[rows] for name, values in given.items()}


def _served(
    model: onnx.ModelProto, inputs: Sequence[TensorSpec], what: str
) -> tuple[onnx.ModelProto, OnnxNetwork]:
    """Return a copy of a model with the input sizes of `inputs`, also loaded in ONNX Runtime.

    If ONNX Runtime rejects these sizes, all sizes of the copy are variable. The copy may
    nevertheless run with the sizes of `inputs`: ONNX Runtime rejects sizes that are invalid in any
    branch of the graph, even if no request takes this branch.
    """
    sized = _as_served(model, inputs)
    try:
        return sized, OnnxNetwork(sized.SerializeToString(), what)
    except ExportError:
        any_size = [replace(each, dims=(OPEN,) * len(each.dims)) for each in inputs]
        unsized = _as_served(model, any_size)
        return unsized, OnnxNetwork(unsized.SerializeToString(), what)


def _as_served(model: onnx.ModelProto, inputs: Sequence[TensorSpec]) -> onnx.ModelProto:
    """Return a copy of the model with the input sizes of `inputs`.

    The copy declares only the shapes of the inputs. From these shapes, ONNX Runtime infers the
    shapes of all other tensors.
    """
    import onnx

    served = onnx.ModelProto()
    served.CopyFrom(model)
    for value, each in zip(inputs_of(served.graph), inputs, strict=True):
        _declare(value, each.dims, value.type.tensor_type.elem_type)
    for graph in all_graphs(served.graph):
        del graph.value_info[:]
    for output in served.graph.output:
        output.type.tensor_type.ClearField("shape")
    served.ir_version = min(served.ir_version, MAX_IR_VERSION)
    return served


def _declare(value: onnx.ValueInfoProto, dims: Sequence[int], kind: int) -> None:
    import onnx

    shape = [None if size == OPEN else size for size in dims]
    value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, kind, shape))


def _reference(
    network: OnnxNetwork, given: Examples, task: OwnOnnxTask, precision: Precision, what: str
) -> Reference:
    """Return the reference: the examples, and the response of the model to each example.

    Raises ExportError if the model rejects an example, or if a response contains a value that is
    not a finite number. Also raises ExportError if two responses to the same request differ, unless
    `task.deterministic` is false.
    """
    count = len(next(iter(given.values())))
    try:
        answers = [
            network.answer({name: of[i] for name, of in given.items()}) for i in range(count)
        ]
    except ExportError as refusal:
        if task.examples.inputs or task.examples.images:
            raise
        raise ExportError(
            f"{refusal}. Perseus sent random values. If the model needs other values, write your"
            " own examples into a file (inputs: file.npz), or set the range of the random values"
            " (values: {low, high})"
        ) from refusal
    found = Reference(given, answers, has_batches=False, precision=precision)
    for name in found.outputs:
        numbers = found.all_answers(name)
        if numbers[0].dtype not in DATATYPES:
            raise ExportError(f"{what}: its output {name!r} is not a tensor of numbers")
        if not numbers[0].ndim:
            raise ExportError(
                f"{what}: its output {name!r} is one number without dimensions, and the file"
                " declares no shape of this output. Declare the shape in the file"
            )
        if not all(np.isfinite(each).all() for each in numbers):
            raise ExportError(f"{what}: its output {name!r} has values that are not finite")
    tolerance = TOLERANCES["fp32"]  # rounding is the same in both runs, even in a low precision
    scales = found.scales(tolerance)
    # Run every example a second time, not only one: if the response has few numbers, even two
    # random responses may be equal by chance.
    error = max(found.error([i], network.answer(found.given([i])), scales) for i in range(count))
    if error <= tolerance:
        return found
    if task.deterministic:
        raise ExportError(
            f"{what}: two responses to the same request differ by {error:.2g} times the difference"
            " between responses to different requests. Is a dropout layer still active? To measure"
            " the model nevertheless, set deterministic: false"
        )
    return replace(found, is_deterministic=False)


def _notes(reference: Reference, what: str) -> Iterator[str]:
    if not reference.is_deterministic:
        yield (
            f"{what}: the responses to the same request differ, so no check can detect a wrong"
            " response"
        )
    for name in reference.outputs:
        answers = reference.all_answers(name)
        if all(np.array_equal(each, answers[0]) for each in answers):
            yield (
                f"{what}: its output {name!r} is the same for all requests, so no check can detect"
                " a wrong output"
            )


def _rows(alone: Reference, given: Examples, size: int | None) -> Reference:
    """Return a reference with one response per example, from responses to batches.

    In the reference `alone`, each request is a batch of `size` examples (see `_grouped`). The
    response to an example is the first row of the response to the batch that begins with this
    example. `given` has the single examples.

    Raises ExportError if the first size of an output is not the batch size, or if the shape of an
    output varies.
    """
    if size is None:
        raise ExportError(
            "its inputs differ in their first size, so there is no batch size"
            if len({values.shape[1:2] for values in given.values()}) > 1
            else "an example is a whole input, without a batch dimension"
        )
    for name in alone.outputs:
        answers = alone.all_answers(name)
        if any(each.shape[:1] != (size,) for each in answers):
            shapes = " or ".join(sorted({str(each.shape) for each in answers}))
            raise ExportError(
                f"the first size of its output {name!r} of shape {shapes} is not the batch size"
                f" {size}"
            )
        if len({each.shape for each in answers}) > 1:
            raise ExportError(f"the shape of its output {name!r} depends on the input")
    rows = [{name: np.asarray(each[name][0]) for name in alone.outputs} for each in alone.answers]
    return replace(alone, inputs=given, answers=rows, has_batches=True)


def _write(
    model: onnx.ModelProto,
    inputs: Sequence[TensorSpec],
    reference: Reference,
    path: Path,
    what: str,
) -> tuple[ModelTensors, dict[str, Any]]:
    """Write the ONNX file for Triton. Return its inputs and outputs, and the result of a check.

    The check (`onnx_export.compared`) compares the responses of the file with `reference`. Raises
    ExportError if they differ. If `reference.has_batches` is true, the sizes in `inputs` do not
    include the batch size.
    """
    import onnx

    before = (OPEN,) if reference.has_batches else ()
    whole_inputs = [replace(each, dims=(*before, *each.dims)) for each in inputs]
    served, network = _served(model, whole_inputs, what)
    outputs = [
        TensorSpec(
            name,
            DATATYPES[answer.dtype],
            _known(network.output_shapes[name], len(before) + answer.ndim)[len(before) :],
        )
        for name, answer in reference.answers[0].items()
    ]
    for value, each in zip(served.graph.output, outputs, strict=True):
        kind = onnx.helper.np_dtype_to_tensor_dtype(DTYPES[each.datatype])
        _declare(value, (*before, *each.dims), kind)
    path.write_bytes(served.SerializeToString())
    check = compared(path, reference, what, TOLERANCES[reference.precision])
    if not check["relative_error"] <= check["tolerance"]:
        raise ExportError(
            "the responses to a batch differ from the responses to single examples (relative error"
            f" {check['relative_error']:.2g}, allowed {check['tolerance']:g})"
        )
    return ModelTensors(tuple(inputs), tuple(outputs), reference.has_batches), check


def _known(shape: Sequence[Any], rank: int) -> tuple[int, ...]:
    """Return the shape of an output of `rank` dimensions, from the shape that ONNX Runtime infers.

    A size that ONNX Runtime cannot infer is variable.
    """
    known = list(shape) if len(shape) == rank else [None] * rank
    return tuple(size if isinstance(size, int) and size > 0 else OPEN for size in known)
