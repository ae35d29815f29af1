"""Make example inputs for a user's model from a file of arrays, images or random values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from perseus.models.examples import examples, whole_range
from perseus.models.networks import ExportError
from perseus.models.tensors import DATATYPES, DTYPES, OPEN, Tensor, TensorSpec
from perseus.study.image_files import MAX_EXAMPLES, MIN_IMAGES
from perseus.study.tasks.own_examples import OwnExamples, Pixels, Values


def own_examples(asked: OwnExamples, inputs: Sequence[TensorSpec], seed: int) -> dict[str, Tensor]:
    """Return the examples of each input by name, shape (n, *dims).

    Raises ExportError if the model cannot take the examples in the configuration. The message lists
    all `example_problems`.
    """
    if wrong := list(example_problems(asked, inputs)):
        raise ExportError("; ".join(wrong))
    if asked.inputs:
        with np.load(asked.inputs) as arrays:
            return {each.name: arrays[each.name][:MAX_EXAMPLES] for each in inputs}
    if asked.images:
        (only,) = inputs
        images = [_pixels(Path(name), asked.pixels, only) for name in asked.images]
        return {only.name: np.stack(images).astype(DTYPES[only.datatype])}
    return examples(inputs, MIN_IMAGES, seed, asked.values)


def are_whole_inputs(asked: OwnExamples, inputs: Sequence[TensorSpec]) -> bool:
    """Return whether each example in the configuration has the shape of a whole input.

    In this case, the model has no batch dimension.
    """
    if any(OPEN in each.dims for each in inputs):
        return False
    if asked.images:
        return [len(each.dims) for each in inputs] == [3]
    if not asked.inputs:
        return False
    try:
        with np.load(asked.inputs) as arrays:
            return all(arrays[each.name].ndim == 1 + len(each.dims) for each in inputs)
    except Exception:  # `example_problems` says what is wrong with the file
        return False


def example_problems(asked: OwnExamples, inputs: Sequence[TensorSpec]) -> Iterator[str]:
    """Yield the reasons why the inputs of a model cannot take the examples in the configuration."""
    if asked.inputs:
        yield from _problems_of_file(Path(asked.inputs), inputs)
    if asked.images:
        yield from _problems_of_images(asked.pixels, inputs)
    if asked.values:
        for each in inputs:
            yield from _problems_of_values(asked.values, each)


def _problems_of_file(path: Path, inputs: Sequence[TensorSpec]) -> Iterator[str]:
    try:
        arrays = np.load(path)
        if isinstance(arrays, np.ndarray):
            raise TypeError("it has one array, without a name")
        with arrays:
            found = {name: arrays[name] for name in arrays.files}
        for name, array in found.items():
            if not isinstance(array, np.ndarray):
                raise TypeError(f"its part {name!r} is not an array")
    except Exception as error:  # numpy, zipfile and zlib raise many kinds of errors
        yield (
            f"inputs: {path} is not an .npz file of arrays ({_first_line(error)}): write it with"
            " numpy.savez(path, **{name of input: array})"
        )
        return
    names = [each.name for each in inputs]
    for name in names:
        if name not in found:
            has = ", ".join(map(repr, found)) or "none"
            yield (
                f"inputs: {path} has no array for the model's input {name!r} (arrays in the file:"
                f" {has})"
            )
    for name in found:
        if name not in names:
            has = ", ".join(map(repr, names))
            yield f"inputs: {path} has an array {name!r}, but the model has only the inputs {has}"
    for each in inputs:
        if each.name in found:
            yield from _problems_of_array(path, found[each.name], each)
    counts = {name: len(found[name]) for name in names if name in found and found[name].ndim}
    if len(set(counts.values())) > 1:
        sizes = ", ".join(f"{count} examples of {name!r}" for name, count in counts.items())
        yield (
            f"inputs: {path} has {sizes}: all arrays must have the same first dimension, the number"
            " of examples"
        )


def _problems_of_array(path: Path, array: Tensor, of: TensorSpec) -> Iterator[str]:
    kind = DATATYPES.get(array.dtype, str(array.dtype))
    if kind != of.datatype:
        yield (
            f"inputs: {path}: the array {of.name!r} is of type {array.dtype}, but the model takes"
            f" {DTYPES[of.datatype]} (convert the array with array.astype)"
        )
    if array.ndim == 0 or array.shape[1:] != of.dims or not len(array):
        yield (
            f"inputs: {path}: the array {of.name!r} has the shape {array.shape}, but must have the"
            f" shape (examples{''.join(f', {size}' for size in of.dims)})"
        )
    elif array.dtype.kind == "f" and not np.isfinite(array).all():
        yield f"inputs: {path}: the array {of.name!r} has values that are not finite"


def _problems_of_images(pixels: Pixels, inputs: Sequence[TensorSpec]) -> Iterator[str]:
    if len(inputs) != 1:
        names = ", ".join(repr(each.name) for each in inputs)
        yield (
            f"images: the model has {len(inputs)} inputs ({names}), but images are possible only"
            " for a model with one input: use inputs: file.npz instead"
        )
        return
    (only,) = inputs
    if (layout := _layout(pixels, only)) is None:
        sizes = {"nchw": "the first", "nhwc": "the last"}
        wanted = (
            f"{sizes[pixels.layout]} must be the number of channels: 1 or 3"
            if pixels.layout
            else "either the first or the last must be the number of channels: 1 or 3 (if both are"
            " 1 or 3, set layout: nchw or layout: nhwc)"
        )
        yield f"images: the input {only} must have three sizes, and {wanted}"
        return
    channels = only.dims[0 if layout == "nchw" else -1]
    for key in ("mean", "std"):
        values = getattr(pixels, key)
        if len(values) not in (1, channels):
            yield f"{key} has {len(values)} numbers, but the images have {channels} channels"


def _layout(pixels: Pixels, of: TensorSpec) -> str | None:
    """Return the layout of an input for images: "nchw" (channels first) or "nhwc" (channels last).

    The result is None if the shape of the input is possible in no layout or in both layouts.
    """
    places = {"nchw": 0, "nhwc": -1}
    asked = [pixels.layout] if pixels.layout else list(places)
    fitting = [each for each in asked if len(of.dims) == 3 and of.dims[places[each]] in (1, 3)]
    return fitting[0] if len(fitting) == 1 else None


def _pixels(path: Path, pixels: Pixels, of: TensorSpec) -> Tensor:
    """Return the image in the file `path` as an input of the model.

    The function resizes the image to the size of the input, and converts each pixel into
    (pixel * scale - mean) / std.
    """
    from PIL import Image

    is_first = _layout(pixels, of) == "nchw"
    channels = of.dims[0 if is_first else -1]
    height, width = of.dims[1:] if is_first else of.dims[:2]
    try:
        with Image.open(path, formats=("PNG", "JPEG")) as file:
            image = file.convert("RGB" if channels == 3 else "L")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ExportError(f"{path} cannot be read as a PNG or JPEG image: {error}") from error
    resized = image.resize((width, height), Image.Resampling.BILINEAR)
    numbers = np.asarray(resized, np.float64).reshape(height, width, channels)
    made = (numbers * pixels.scale - np.array(pixels.mean)) / np.array(pixels.std)
    return made.transpose(2, 0, 1) if is_first else made


def _problems_of_values(values: Values, of: TensorSpec) -> Iterator[str]:
    dtype = DTYPES[of.datatype]
    if dtype.kind in "iu":
        low, high = whole_range(values)
        fits = np.iinfo(dtype).min <= low <= high <= np.iinfo(dtype).max
    elif dtype.kind == "f":
        most = float(np.finfo(dtype).max)
        fits = -most <= values.low and values.high <= most
    else:
        return
    if not fits:
        yield (
            f"values: the input {of.name!r} of type {of.datatype} cannot take values from"
            f" {values.low:g} to {values.high:g}"
        )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
