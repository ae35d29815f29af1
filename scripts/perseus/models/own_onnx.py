"""A user's own ONNX file, made ready to be served as an exported CNN is, and proved to be the same.

Nothing of the file is executed but by ONNX Runtime, which knows no code in models.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perseus.host.files import whole
from perseus.models.answers import TOLERANCES, Array, relative_error
from perseus.models.external_data import (
    load_external_data,
    require_data_beside,
    sha256_with_data,
)
from perseus.models.networks import ExportError
from perseus.models.onnx_export import (
    MAX_IR_VERSION,
    check_onnx,
    images_to_ask,
    in_batches,
    keep_answers,
    onnx_session,
)
from perseus.models.onnx_graphs import all_graphs, rename_values
from perseus.study.image_files import MAX_INPUT_PX, MIN_INPUT_PX
from perseus.study.tasks.own_onnx import OwnOnnxTask

if TYPE_CHECKING:
    import onnx

PREPROCESSED_LIKE = "resnet50", "DEFAULT"
"""The architecture and weights whose preprocessing the images of a user's own network have."""


def take_onnx(
    task: OwnOnnxTask, source: Path, onnx_path: Path, reference_path: Path
) -> dict[str, Any]:
    """Write `onnx_path` and `reference_path`, as `export_model` does; return the check's record.

    The file gets the names, the dynamic batch and the IR version of exported ones. The reference
    are the answers of `source` itself under ONNX Runtime, image by image, or in batches of the size
    that it is fixed to. `fixed_batch` in the record is that size where the file served takes no
    other either, else None.

    Raises ExportError for a file that is no CNN of one image input and one output, that keeps its
    weights outside of its folder, or whose answers depend on how images are batched.
    """
    import onnx

    model = _read(source)
    batch, size = _input(model, source, task.input_size)
    load_external_data(model, source)
    images = images_to_ask(task.images, size, task.seed, PREPROCESSED_LIKE)
    output = _answers(model, images, batch, source)
    with whole(onnx_path) as onnx_file, whole(reference_path) as npz:
        onnx.save_model(_as_served(model, size), str(onnx_file))
        try:
            fixed_batch, check = _checked(onnx_file, images, output, batch, source)
        except ExportError:
            _require_unmixed(model, images, output, batch, source)
            raise
        kept = keep_answers(onnx_file, images, output, npz)
    return {
        "source_sha256": sha256_with_data(source),
        "images": list(task.images),
        "fixed_batch": fixed_batch,
        **check,
        **kept,
    }


def require_classifier(source: Path, input_size: int | None) -> None:
    """Raises ExportError unless a file says of itself that it is what `take_onnx` takes.

    Nothing of it is run.
    """
    _input(_read(source), source, input_size)


def _read(source: Path) -> onnx.ModelProto:
    import onnx
    from google.protobuf.message import DecodeError

    try:
        # By what it holds: without a format, onnx goes by the end of the name.
        model = onnx.load_model(str(source), format="protobuf", load_external_data=False)
    except DecodeError as error:
        raise ExportError(f"{source} is not an ONNX file") from error
    except OSError as error:
        raise ExportError(f"{source} cannot be read: {error.strerror}") from error
    if not model.graph.node:
        raise ExportError(f"{source} is not an ONNX file")
    require_data_beside(model, source)
    _infer_answers(model)
    return model


def _infer_answers(model: onnx.ModelProto) -> None:
    """Give outputs the shapes that the nodes tell, where those declared leave something open."""
    import onnx

    outputs = model.graph.output
    if all(len(_dims(each)) >= 2 and None not in _dims(each)[2:] for each in outputs):
        return
    # Operators that it does not know tell it nothing.
    with contextlib.suppress(onnx.shape_inference.InferenceError):
        inferred = onnx.shape_inference.infer_shapes(model).graph.output
        for output, told in zip(outputs, inferred, strict=True):
            output.CopyFrom(told)


def _input(model: onnx.ModelProto, source: Path, wanted_px: int | None) -> tuple[int | None, int]:
    """(the batch size that a file is fixed to, None if to none; height and width in pixels).

    Raises ExportError unless it maps one batch of float32 images (batch, 3, H, W) to one output
    (batch, classes), which may end in further sizes of 1.
    """
    import onnx

    inputs = _image_inputs(model.graph)
    _require_one(source, "inputs", [each.name for each in inputs])
    _require_one(source, "outputs", [each.name for each in model.graph.output])
    name, (given, made) = inputs[0].name, (inputs[0], model.graph.output[0])
    dims, answered = _dims(given), _dims(made)
    if (
        given.type.tensor_type.elem_type != onnx.TensorProto.FLOAT
        or len(dims) != 4
        or dims[1] not in (3, None)
    ):
        raise ExportError(
            f"{source}: its input {name!r} is {_shape(given)}; images are float32 (batch, 3,"
            " height, width)"
        )
    if len(answered) < 2 or any(size != 1 for size in answered[2:]):
        raise ExportError(
            f"{source}: its output {made.name!r} is {_shape(made)}; answers are (batch, classes)"
        )
    sizes_px = {px for px in (*dims[2:], wanted_px) if px is not None}
    if len(sizes_px) != 1:
        problem = "images must be square, and of input_size" if sizes_px else "set input_size"
        raise ExportError(f"{source}: its input {name!r} is {_shape(given)}: {problem}")
    (size_px,) = sizes_px
    if not MIN_INPUT_PX <= size_px <= MAX_INPUT_PX:
        raise ExportError(
            f"{source}: its input {name!r} is {_shape(given)}: images are of {MIN_INPUT_PX} to"
            f" {MAX_INPUT_PX} pixels each way"
        )
    return dims[0], size_px


def _image_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Old files list their weights among their inputs, too."""
    weights = {each.name for each in graph.initializer}
    return [each for each in graph.input if each.name not in weights]


def _require_one(source: Path, what: str, names: Sequence[str]) -> None:
    if len(names) != 1:
        named = ", ".join(map(repr, names))
        raise ExportError(
            f"{source} has {len(names)} {what} ({named}), not one: let a Triton elsewhere serve it,"
            " and name it by served_model: (docs/how-to/remote-servers.md)"
        )


def _dims(of: onnx.ValueInfoProto) -> list[int | None]:
    """Its sizes, None where they are open, as those below 0 are meant to be."""
    sizes = (dim.dim_value for dim in of.type.tensor_type.shape.dim)
    return [size if size > 0 else None for size in sizes]


def _shape(of: onnx.ValueInfoProto) -> str:
    import onnx

    number = of.type.tensor_type.elem_type
    names = {number: name.lower() for name, number in onnx.TensorProto.DataType.items()}
    kind = names.get(number, f"of type {number}")
    if not of.type.tensor_type.HasField("shape"):
        return f"{kind} of no declared shape"
    sizes = ", ".join("?" if size is None else str(size) for size in _dims(of))
    return f"{kind} ({sizes})"


def _answers(model: onnx.ModelProto, images: Array, batch: int | None, source: Path) -> Array:
    """What a file itself answers, shape (n, classes)."""
    try:
        session = onnx_session(model.SerializeToString())
        name = session.get_inputs()[0].name
        parts = [session.run(None, {name: part})[0] for part in in_batches(images, batch or 1)]
        answers: Array = np.concatenate(parts)[: len(images)]
    except Exception as error:  # onnxruntime's errors share no base class below Exception
        raise ExportError(f"onnxruntime cannot run {source}: {error}") from error
    if answers.dtype != np.float32:
        raise ExportError(f"{source} answers in {answers.dtype}; answers are float32")
    return answers.reshape(len(answers), -1)


def _checked(
    served: Path, images: Array, output: Array, batch: int | None, source: Path
) -> tuple[int | None, dict[str, Any]]:
    """(the batch size that the file served is fixed to, the check), as in `take_onnx`."""
    try:
        return None, check_onnx(served, images, output, what=source.name)
    except ExportError:
        if batch is None:
            raise
    return batch, check_onnx(served, images, output, what=source.name, batch=batch)


def _require_unmixed(
    model: onnx.ModelProto, images: Array, output: Array, batch: int | None, source: Path
) -> None:
    """Raises ExportError where an answer depends on what else is in the batch.

    `output` is compared with the answers to all images as one batch, or where a file is fixed to
    batches, with those to batches of one image again and again.
    """
    if batch is None:
        others = _answers(model, images, len(images), source)
    else:
        others = _answers(model, np.repeat(images, batch, axis=0), batch, source)[::batch]
    # Not by their signal, which is rounding where answers are alike.
    level = float(max(np.abs(output).max(), np.abs(others).max()))
    if np.isfinite(level) and relative_error(others, output, level or 1.0) > TOLERANCES["fp32"]:
        raise ExportError(
            f"{source} answers an image otherwise when it is in a batch with others: it mixes the"
            " images of a batch (by an operator over the first axis, perhaps), so that no answer"
            " can be checked"
        )


def _as_served(model: onnx.ModelProto, size: int) -> onnx.ModelProto:
    """The same network from "input" float32 [batch, 3, size, size] to "output" [batch, classes]."""
    import onnx
    from onnx import helper

    served = onnx.ModelProto()
    served.CopyFrom(model)
    graph = served.graph
    rename_values(graph, ("input", "output"))
    (given,), (made,) = _image_inputs(graph), graph.output
    classes = _dims(made)[1] or "classes"
    before = helper.make_node("Identity", ["input"], [given.name])
    after = helper.make_node("Flatten", [made.name], ["output"])  # of sizes of 1, if it has any
    nodes = [before, *graph.node, after]
    del graph.node[:]
    graph.node.extend(nodes)
    # What a fixed batch made known of the shapes in between does not hold any more.
    for each in all_graphs(graph):
        del each.value_info[:]
    declare, kind = helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    given.CopyFrom(declare("input", kind, ["batch", 3, size, size]))
    made.CopyFrom(declare("output", kind, ["batch", classes]))
    served.ir_version = min(served.ir_version, MAX_IR_VERSION)
    return served
