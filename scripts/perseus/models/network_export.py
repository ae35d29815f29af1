"""Export a neural network of timm, or a detection or segmentation network of torchvision, to ONNX.

torch.onnx.export writes the ONNX file, and Perseus compares the responses of ONNX Runtime with the
outputs that torch computes. Then the module `own_onnx` prepares the ONNX file for Triton, in the
same way as an ONNX file of the user.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from perseus.host.orphans import temporary_folder
from perseus.models.architectures import Detector, Library, Timm, of_library
from perseus.models.examples import random_images
from perseus.models.export_errors import raise_temporary
from perseus.models.networks import ExportError, build, import_torchvision
from perseus.models.onnx_export import check_onnx, write_onnx
from perseus.models.own_examples import own_examples
from perseus.models.own_onnx import take_onnx
from perseus.models.reference import Reference
from perseus.models.tensors import Tensor, TensorSpec
from perseus.study.tasks.network import NetworkTask
from perseus.study.tasks.own_onnx import OwnOnnxTask

if TYPE_CHECKING:
    import torch

TYPICAL: Final = 4
"""Number of random images with which `networks.build` scales the batch normalisation."""


def export_network(task: NetworkTask, onnx_path: Path, reference_path: Path) -> dict[str, Any]:
    """Export a network to `onnx_path`. Return the export record (the content of check.json).

    The function also writes the file `reference_path`, with examples and the responses of the ONNX
    file to these examples. The input of the ONNX file has the name "input" and contains images
    (n, 3, H, W). If the network does not name its outputs, its only output has the name "output".
    If the network does not support batches, `notes` in the record says why.

    Raises ExportError if the architecture or the weights are unknown, if the architecture does not
    accept the weights or the input size, if torch cannot export the network, or if the ONNX file
    responds differently from torch.
    """
    of = of_library(task.architecture, task.input_size)
    size = task.input_size or of.input_px
    network = _network(of, task, size)
    examples = task.examples.model_copy(update={"pixels": of.pixels})
    asked = own_examples(examples, [TensorSpec("input", "FP32", (3, size, size))], task.seed)
    reference = _reference(of, network, asked, task.architecture)
    with temporary_folder() as folder:
        source = folder / "network.onnx"
        notes = _write(of, network, asked["input"], reference.outputs, source, task.architecture)
        check = check_onnx(source, reference, what=task.architecture)
        own = OwnOnnxTask(seed=task.seed, examples=examples)
        record = take_onnx(
            own, source, onnx_path, reference_path, task.architecture, reference.sorted_by
        )
    return {
        **record,
        "architecture": task.architecture,
        "weights": task.weights,
        "seed": task.seed,
        "notes": [*notes, *record["notes"]],
        "relative_error_to_torch": check["relative_error"],
        "versions": _versions(of),
    }


def _network(of: Library, task: NetworkTask, size: int) -> torch.nn.Module:
    torch, _ = import_torchvision()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(task.seed)
        typical = random_images(TYPICAL, size, task.seed + 1)
        return build(of, task.weights, typical).eval()


def _reference(
    of: Library, network: torch.nn.Module, asked: Mapping[str, Tensor], what: str
) -> Reference:
    """Return the examples with the outputs that torch computes for each single example."""
    torch, _ = import_torchvision()
    alone = np.asarray(asked["input"])[:, np.newaxis]
    try:
        with torch.no_grad():
            answers = [_named(of.call(network, torch.from_numpy(each))) for each in alone]
    except (AssertionError, RuntimeError, ValueError, IndexError) as error:
        raise_temporary(error)
        size = alone.shape[-1]
        raise ExportError(
            f"{what} does not accept images of {size} x {size} pixels: {error}. To use images of"
            f" {of.input_px} x {of.input_px} pixels, remove input_size."
        ) from error
    numbers = [{name: value.numpy() for name, value in answer.items()} for answer in answers]
    sorted_by = "scores" if isinstance(of, Detector) else ""
    return Reference({"input": alone}, numbers, has_batches=False, sorted_by=sorted_by)


def _named(answer: Any) -> dict[str, torch.Tensor]:
    """Return the outputs of a network of torch by name.

    Raises ExportError if an output is not a tensor.
    """
    torch, _ = import_torchvision()
    named = answer if isinstance(answer, dict) else {"output": answer}
    if not all(isinstance(each, torch.Tensor) for each in named.values()):
        raise ExportError(
            "the network returns values that are not tensors. Export the network to ONNX yourself,"
            " and write the path of the ONNX file under the key `onnx`"
        )
    return dict(named)


def _write(
    of: Library,
    network: torch.nn.Module,
    images: Tensor,
    outputs: Sequence[str],
    path: Path,
    what: str,
) -> list[str]:
    """Write the ONNX file, with a variable batch size if possible.

    If the export with a variable batch size fails, the function writes a file for single images,
    and returns the reason as a note.
    """
    torch, _ = import_torchvision()

    class Exported(torch.nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, images: Any) -> tuple[Any, ...]:
            return tuple(_named(of.call(self.network, images)).values())

    # The exporter sets the network to the mode of this wrapper. With eval(), the network stays in
    # evaluation mode.
    write = functools.partial(write_onnx, Exported().eval(), path=path, outputs=outputs)
    notes = []
    with torch.no_grad():
        if of.takes_batches:
            try:
                write(images[:2])
                return []
            except ExportError as error:
                notes.append(
                    f"{what} does not support batches after the export: {_first_line(error)}"
                )
        write(images[:1], is_batch_open=False, is_traced=isinstance(of, Detector))
    return notes


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def _versions(of: Library) -> dict[str, str]:
    packages = ["torch", "torchvision", "onnx", "onnxruntime"]
    if isinstance(of, Timm):
        packages.append("timm")
    return {name: importlib.metadata.version(name) for name in packages}
