"""Export a torchvision CNN as a program of torch.export, for the runtime `pytorch`.

The program is a zip archive with JSON and raw tensors. If an archive contains files of another
kind, torch.export.load unpickles these files, and unpickling can run malicious code. Therefore the
backend (scripts/backends/pytorch) rejects an archive that contains anything except JSON and raw
tensors.
"""

from __future__ import annotations

import importlib.metadata
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perseus.host.files import whole
from perseus.models.answers import TOLERANCES, Array, relative_error, signal
from perseus.models.export_errors import raise_temporary
from perseus.models.networks import ExportError, import_torchvision
from perseus.models.onnx_export import answered, sha256
from perseus.models.tensors import Tensor
from perseus.study.tasks.export import ExportTask

if TYPE_CHECKING:
    import torch

LARGEST_BATCH: Final = 1024  # the limit of `max_batch_size` in the configuration


def export_program(task: ExportTask, path: Path) -> dict[str, Any]:
    """Write the program to `path` (.pt2). Return a record with the relative error of its responses.

    For the relative error, the function compares the responses of the program with those of the
    network in torch. The program converts images (batch, 3, H, W) into scores (batch, classes),
    float32. A batch can have 1 to LARGEST_BATCH images. The images are float32 or, for uint8
    requests, uint8. Raises ExportError if torch cannot export the network, or if the relative error
    is too large.
    """
    torch, _ = import_torchvision()
    network, images, expected = answered(task)
    with whole(path) as partial:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _save(network, torch.from_numpy(images[:2]), partial)
                module = _load(partial)
        except Exception as error:  # torch.export raises many kinds of exceptions
            raise_temporary(error)
            raise ExportError(f"torch cannot export {task.architecture}: {error}") from error
        deviation = _deviation(module, images, expected)
        if not deviation <= TOLERANCES["fp32"]:
            raise ExportError(
                f"{task.architecture} responds differently after the export by torch: the error is"
                f" {deviation:.3g} times the difference between responses to different images, but"
                f" may be at most {TOLERANCES['fp32']:g} times this difference. Try another version"
                " of torch."
            )
        return {
            "relative_error": deviation,
            "tolerance": TOLERANCES["fp32"],
            "sha256": sha256(partial),
            "size_bytes": partial.stat().st_size,
            "versions": {
                name: importlib.metadata.version(name) for name in ("torch", "torchvision")
            },
        }


def _save(network: torch.nn.Module, example: torch.Tensor, path: Path) -> None:
    """Write the program to `path`.

    `example` must have 2 or more images, since torch.export treats the batch sizes 0 and 1 as
    constants.
    """
    torch, _ = import_torchvision()
    batch = torch.export.Dim("batch", min=1, max=LARGEST_BATCH)
    program = torch.export.export(network, (example,), dynamic_shapes=({0: batch},))
    program.example_inputs = None  # torch would pickle these attributes
    with path.open("wb") as stream:
        torch.export.save(program, stream)


def _load(path: Path) -> torch.nn.Module:
    torch, _ = import_torchvision()
    with path.open("rb") as stream:
        return torch.export.load(stream).module()


def _deviation(module: torch.nn.Module, images: Tensor, expected: Array) -> float:
    """Return the relative error of the program's responses to `images`.

    The function tests two batch sizes: the first image alone, and all other images as one batch.
    """
    torch, _ = import_torchvision()
    scale, parts = signal(expected), (slice(0, 1), slice(1, len(images)))
    with torch.no_grad():
        answers = [module(torch.from_numpy(images[part])).numpy() for part in parts]
    return max(
        relative_error(answer, expected[part], scale)
        for answer, part in zip(answers, parts, strict=True)
    )
