"""Files of a user's own, weights and networks, looked at before any job takes them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path

from perseus.models.networks import ExportError, require_fit
from perseus.models.own_inputs import Sizes
from perseus.models.own_onnx import own_problems
from perseus.study.model import Model


def problems(models: Iterable[Model]) -> Iterator[str]:
    """Why the files of these models cannot be taken, as far as that is told without running them.

    What needs a package that only jobs have is left to them.
    """
    for model in models:
        key = "onnx" if model.onnx else "weights"
        yield from (f"models: {model.name}: {key}: {problem}" for problem in _of_files(model))


def _of_files(model: Model) -> Iterator[str]:
    try:
        if model.onnx and _is_installed("onnx"):
            yield from own_problems(Path(model.onnx), Sizes(model.shape, model.input_size))
        elif model.of_torchvision and model.weights_file and _is_installed("torch"):
            require_fit(model.architecture, Path(model.weights_file))
    except ExportError as error:
        yield str(error)


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
