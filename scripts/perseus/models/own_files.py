"""Check the user's weights and ONNX files before any job uses a file."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from perseus.models.architectures import Classifier, of_library
from perseus.models.networks import ExportError, default_input_size, require_fit
from perseus.models.own_examples import example_problems
from perseus.models.own_inputs import Sizes
from perseus.models.own_onnx import own_problems
from perseus.models.tensors import TensorSpec
from perseus.study.model import Model
from perseus.study.planning import own_examples


def problems(models: Iterable[tuple[Model, Sequence[str]]]) -> Iterator[str]:
    """Yield the reasons why Perseus cannot use the files of the models in `models`.

    The function runs no model. `models` contains each model with the paths of its image files. If a
    check needs a package that is not installed, the function skips the check. Later, the export job
    of the model repeats all checks, also the skipped ones.
    """
    for model, images in models:
        yield from (f"models: {model.name}: {problem}" for problem in _of_files(model, images))


def _of_files(model: Model, images: Sequence[str]) -> Iterator[str]:
    try:
        if model.onnx and _is_installed("onnx"):
            sizes = Sizes(model.shape, model.input_size)
            yield from own_problems(Path(model.onnx), sizes, own_examples(model, images))
        elif model.is_built and _is_installed("torch"):
            yield from _of_built(model, images)
    except ExportError as error:
        yield f"{'onnx' if model.onnx else 'weights'}: {error}"


def _of_built(model: Model, images: Sequence[str]) -> Iterator[str]:
    if not model.is_of_library:
        if model.weights_file:
            size = model.input_size or default_input_size(model.architecture)
            of_size = Classifier(model.architecture, size)
            require_fit(of_size, Path(model.weights_file))
        return
    try:
        of = of_library(model.architecture, model.input_size)
        size, known = model.input_size or of.input_px, of.known_weights
    except ExportError as error:
        yield f"architecture: {error}"
        return
    yield from example_problems(
        own_examples(model, images), [TensorSpec("input", "FP32", (3, size, size))]
    )
    if model.weights_file:
        require_fit(of, Path(model.weights_file))
    elif model.weights not in ("random", *known):
        choices = "' or '".join(["random", *known])
        yield f"weights: for {model.architecture}, write '{choices}'"


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
