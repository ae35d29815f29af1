"""Export a classification CNN of torchvision to ONNX, and check the responses of the ONNX file.

The function `export_model` builds the network, writes `model.onnx` with a variable batch size, runs
the file in ONNX Runtime, and compares the responses with the outputs that torch computes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from perseus.host.files import whole
from perseus.models.answers import TOLERANCES, Array, signal
from perseus.models.architectures import Classifier
from perseus.models.examples import random_images, random_pixels
from perseus.models.export_errors import export_or_write_error, raise_temporary
from perseus.models.images import read_images
from perseus.models.network_cost import network_cost
from perseus.models.networks import (
    IMAGENET_CLASSES,
    ExportError,
    build,
    default_input_size,
    import_torchvision,
    normalised,
    of_pixels,
    pixels_by,
    preset,
    require_known,
)
from perseus.models.onnx_network import OnnxNetwork
from perseus.models.reference import Reference
from perseus.models.tensors import DATATYPES, ModelTensors, Tensor
from perseus.study.image_files import MIN_IMAGES
from perseus.study.tasks.export import ExportTask

if TYPE_CHECKING:
    import torch

# Smallest permitted signal (difference between responses to different images), as a share of the
# largest output. With this signal, the check can distinguish a wrong response from float32
# rounding, which is 2**-24 = 6e-8 per operation.
MIN_SIGNAL_SHARE: Final = 1e-4
# ONNX Runtime 1.18 (in Triton 24.06) and all newer runtimes read this opset and this IR version.
OPSET: Final = 18
MAX_IR_VERSION: Final = 10
LARGEST_BYTES: Final = 2**31 - 2**20
"""Largest size of the weights in an ONNX file. An ONNX file is a protobuf message, which can be at
most 2 GiB."""


def export_model(task: ExportTask, onnx_path: Path, reference_path: Path) -> dict[str, Any]:
    """Export a model to `onnx_path`. Return the export record (the content of check.json).

    The function also writes the file `reference_path`, with images and the outputs that torch
    computes for these images. The ONNX file has the input "input" [batch, 3, H, W] and the output
    "output" float32 [batch, classes]. The type of the input is float32 or, for uint8 requests,
    uint8. The function writes both files only if the responses of the ONNX file agree with the
    outputs of torch, up to rounding.

    Raises ExportError if the architecture or the weights are unknown, if the architecture does not
    accept the weights or the input size, if an image cannot be read, or if the ONNX file responds
    differently from torch.
    """
    torch, _ = import_torchvision()
    network, images, output = answered(task)
    reference = Reference.of_classifier(images, output)
    tensors = tensors_of(images, output)
    scale = require_signal(output, task.architecture)
    with torch.no_grad(), whole(onnx_path) as onnx_file, whole(reference_path) as npz:
        opset, ir_version = write_onnx(network, images[:2], onnx_file)
        check = check_onnx(onnx_file, reference, what=task.architecture)
        kept = keep_answers(onnx_file, tensors, reference, npz)
    return {
        "architecture": task.architecture,
        "weights": task.weights,
        "seed": task.seed,
        "images": list(task.images),
        "signal": scale,
        **check,
        **kept,
        "opset": opset,
        "ir_version": ir_version,
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("torch", "torchvision", "onnx", "onnxruntime")
        },
    }


def surveyed_export(
    say: Callable[[str], None], task: ExportTask, onnx_path: Path, reference_path: Path
) -> dict[str, Any]:
    """Export a model of an experiment `catalogue`, as `export_model` does.

    If the network cannot be exported, the function writes the reason to `onnx_path` and continues.
    In this case, the function nevertheless writes the reference, because a runtime that needs no
    ONNX file may serve the network.
    """
    check = export_or_write_error(
        lambda: export_model(task, onnx_path, reference_path), onnx_path, say, ExportError
    )
    if "export_error" not in check:
        return check
    known = {"architecture": task.architecture, "weights": task.weights}
    return {**check, **known, **write_reference(task, reference_path)}


def write_reference(task: ExportTask, path: Path) -> dict[str, Any]:
    """Write the reference of a model that has no ONNX file.

    The file `path` contains images, and the outputs that torch computes for these images. The
    function returns the names, types and sizes of the inputs and outputs, as in an export record.
    If torch cannot run the network, the reference contains zeros. In this case no runtime serves
    the network, so Perseus compares no response with the zeros.
    """
    try:
        _, images, output = answered(task)
    except ExportError:
        images, output = _zeros(task)
    with whole(path) as partial:
        Reference.of_classifier(images, output).write(partial)
    return tensors_of(images, output).plain()


def _zeros(task: ExportTask) -> tuple[Tensor, Array]:
    """Return zeros in place of an image and of the scores that the network gives to an image."""
    size = task.input_size or default_input_size(task.architecture, task.weights)
    pixel = np.uint8 if task.request == "uint8" else np.float32
    return np.zeros((1, 3, size, size), pixel), np.zeros((1, IMAGENET_CLASSES), np.float32)


def answered(task: ExportTask) -> tuple[torch.nn.Module, Tensor, Array]:
    """Return the network, its images (n, 3, H, W), and its responses to the images (n, classes).

    For uint8 requests, the images are pixels, and the returned network normalises the pixels.
    Raises ExportError if the architecture or the weights are unknown, or if the architecture does
    not accept the weights or the input size.
    """
    torch, torchvision = import_torchvision()
    require_known(
        "architecture", task.architecture, torchvision.models.list_models(torchvision.models)
    )
    size = task.input_size or default_input_size(task.architecture, task.weights)
    like = preset(task.architecture, task.weights, size)
    images = images_to_ask(task.images, size, task.seed, like, task.request)
    tensors = normalised(images, like) if images.dtype == np.uint8 else images
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(task.seed)
        typical = random_images(16, size, task.seed + 1)
        network = build(Classifier(task.architecture, size), task.weights, typical).eval()
        try:
            output: Array = network(torch.from_numpy(tensors)).numpy()
        except (AssertionError, RuntimeError, ValueError) as error:
            raise_temporary(error)
            usual = default_input_size(task.architecture, task.weights)
            raise ExportError(
                f"{task.architecture} does not accept images of {size} x {size} pixels: {error}."
                f" To use images of {usual} x {usual} pixels, remove input_size."
            ) from error
    return (network if tensors is images else of_pixels(network, like)), images, output


def tensors_of(images: Tensor, scores: Array) -> ModelTensors:
    """Return the input and output of a network that converts `images` into `scores`."""
    return ModelTensors.of_classifier(images.shape[1:], scores.shape[1], DATATYPES[images.dtype])


def images_to_ask(files: Sequence[str], size: int, seed: int, like: Any, request: str) -> Tensor:
    """Return the images with which Perseus checks a network, shape (n, 3, size, size).

    The function reads the image files `files`, and applies the preprocessing `like` to each image.
    If `files` is empty, the images are random. For uint8 requests, the function does not normalise
    the colours.
    """
    if files:
        transform = pixels_by(like) if request == "uint8" else like
        return read_images([Path(name) for name in files], transform)
    images = random_images(MIN_IMAGES, size, seed)
    return random_pixels(images) if request == "uint8" else images


def check_onnx(
    onnx_path: Path,
    reference: Reference,
    *,
    what: str = "the model",
    tolerance: float = TOLERANCES["fp32"],
) -> dict[str, Any]:
    """Compare the responses of an ONNX file with its reference responses (see `compared`).

    Raises ExportError if the relative error exceeds the tolerance.
    """
    record = compared(onnx_path, reference, what, tolerance)
    if not record["relative_error"] <= tolerance:
        raise ExportError(
            f"{what} responds differently after the export: the error is"
            f" {record['relative_error']:.3g} times the difference between responses to different"
            f" images, but may be at most {tolerance:g} times this difference. Either the export is"
            " wrong (try other versions of torch and onnx), or the images are too similar."
        )
    return record


def compared(onnx_path: Path, reference: Reference, what: str, tolerance: float) -> dict[str, Any]:
    """Run an ONNX file in ONNX Runtime on the CPU, and compare the responses with the reference.

    If the model supports batches, the function tests two batch sizes: the first example alone, and
    all other examples as one batch. The result has the keys relative_error, tolerance and batches
    (the tested batch sizes). Raises ExportError for a file that ONNX Runtime cannot run.
    """
    numbers = list(range(reference.count))
    more = numbers[1:] or [0, 0]
    parts = [numbers[:1], more] if reference.has_batches else [[i] for i in numbers]
    network, scales = OnnxNetwork(str(onnx_path), what), reference.scales(tolerance)
    errors = [
        reference.error(part, network.answer(reference.given(part)), scales) for part in parts
    ]
    return {
        "relative_error": max(errors),
        "tolerance": tolerance,
        "batches": [len(part) for part in parts],
    }


def keep_answers(
    onnx_path: Path, tensors: ModelTensors, reference: Reference, npz: Path
) -> dict[str, Any]:
    """Write the reference of an ONNX file to `npz`. Return entries of the export record.

    The entries are the inputs and outputs, the hash, the size and the cost of the ONNX file.
    """
    reference.write(npz)
    return {
        **tensors.plain(),
        "sha256": sha256(onnx_path),
        "size_bytes": onnx_path.stat().st_size,
        "cost": asdict(network_cost(onnx_path, tensors)),
    }


def require_signal(expected: Array, what: str) -> float:
    """Return the `signal`: how much the responses to different images differ from each other.

    Raises ExportError if the responses hardly depend on the image, because then no check could
    detect a wrong response.
    """
    scale = signal(expected)
    level = float(np.max(np.abs(expected)))
    if not np.isfinite(scale) or scale <= MIN_SIGNAL_SHARE * level:
        raise ExportError(
            f"{what} gives nearly the same response to every image, so no check could detect a"
            f" wrong response (standard deviation over the images {scale:.3g}, largest output"
            f" {level:.3g}). Use other weights or images."
        )
    return scale


def write_onnx(
    network: torch.nn.Module,
    example: Tensor,
    path: Path,
    outputs: Sequence[str] = ("output",),
    *,
    is_batch_open: bool = True,
    is_traced: bool = False,
) -> tuple[int, int]:
    """Write the ONNX file. Return the opset and the IR version of the file.

    If `is_batch_open` is true, the batch size of the ONNX file is variable. For a variable batch
    size, `example` must have 2 or more images, since torch.export treats the sizes 0 and 1 as
    constants. If `is_traced` is true, the TorchScript exporter writes the file. Only this exporter
    supports outputs whose size is the number of detections. Raises ExportError if torch cannot
    export the network, or if the weights are too large for an ONNX file.
    """
    torch, _ = import_torchvision()
    import onnx

    weights_bytes = sum(each.numel() * each.element_size() for each in network.parameters())
    if weights_bytes > LARGEST_BYTES:
        raise ExportError(
            f"the weights of the network have {weights_bytes / 1e9:.1f} GB, but an ONNX file can"
            f" contain weights of at most {LARGEST_BYTES / 1e9:.1f} GB"
        )
    try:
        with _without_logging():
            names = {"input_names": ["input"], "output_names": list(outputs)}
            export = functools.partial(
                torch.onnx.export,
                network,
                (torch.from_numpy(example),),
                opset_version=OPSET,
                verbose=False,
                **names,
            )
            if is_traced:
                file = io.BytesIO()
                export(file, dynamo=False)
                model = onnx.load_model_from_string(file.getvalue())
            else:
                shapes = ({0: "batch"},) if is_batch_open else None
                program = export(dynamo=True, dynamic_shapes=shapes, external_data=False)
                model = program.model_proto
    except Exception as error:  # torch.onnx raises many kinds of exceptions
        raise_temporary(error)
        raise ExportError(f"torch cannot export this network to ONNX: {error}") from error
    # Remove stack traces from the file: paths in stack traces differ between hosts.
    for node in model.graph.node:
        del node.metadata_props[:]
    model.ir_version = min(model.ir_version, MAX_IR_VERSION)
    onnx.save_model(model, str(path))
    opsets = {entry.domain: int(entry.version) for entry in model.opset_import}
    return opsets[""], int(model.ir_version)


@contextlib.contextmanager
def _without_logging() -> Iterator[None]:
    """Suppress the progress bar, warnings and log lines of the exporter, but no exceptions."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
