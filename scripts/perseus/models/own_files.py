"""Files of a user's own, weights and networks, looked at before any job takes them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from perseus.models.networks import ExportError, require_fit
from perseus.models.own_inputs import Sizes
from perseus.models.own_onnx import own_problems
from perseus.study.model import Model
from perseus.study.planning import own_examples


def problems(models: Iterable[tuple[Model, Sequence[str]]]) -> Iterator[str]:
    """Why the files of these models cannot be taken, as far as that is told without running them;
    with each model the files of its images.

    What needs a package that only jobs have is left to them.
    """
    for model, images in models:
        yield from (f"models: {model.name}: {problem}" for problem in _of_files(model, images))


def _of_files(model: Model, images: Sequence[str]) -> Iterator[str]:
    try:
        if model.onnx and _is_installed("onnx"):
            sizes = Sizes(model.shape, model.input_size)
            yield from own_problems(Path(model.onnx), sizes, own_examples(model, images))
        elif model.of_torchvision and model.weights_file and _is_installed("torch"):
            require_fit(model.architecture, Path(model.weights_file))
    except ExportError as error:
        yield f"{'onnx' if model.onnx else 'weights'}: {error}"


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
