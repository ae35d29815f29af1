"""Write encoded images for a network into pictures.npz or labelled.npz.

The file pictures.npz also contains the outputs that torch computes for the images. The file
labelled.npz also contains the correct class of each image.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from perseus.host.files import whole
from perseus.host.orphans import temporary_folder
from perseus.models.images import random_pictures
from perseus.models.labelled import Labelled
from perseus.models.networks import ExportError, preset
from perseus.models.onnx_export import answered, require_signal
from perseus.models.pictures import Pictures
from perseus.models.preprocess import Preprocessing
from perseus.models.reference import Reference
from perseus.study.image_files import LABELS, MIN_IMAGES
from perseus.study.tasks.export import ExportTask
from perseus.study.tasks.labelled import LabelledTask


def export_pictures(task: ExportTask, path: Path) -> None:
    """Write images, and the outputs that torch computes for these images, into `path` (.npz).

    If the task names no images, the function writes seeded random images. To read the file, call
    `Reference.read` and `Pictures.read`. Raises ExportError if torch cannot run the network, if an
    image cannot be read, or if the outputs hardly depend on the image.
    """
    with temporary_folder() as folder:
        names = task.images or random_pictures(folder, MIN_IMAGES, task.seed)
        _, tensors, output = answered(task.model_copy(update={"images": names}))
        files = [np.fromfile(name, np.uint8) for name in names]
    require_signal(output, task.architecture)
    preprocessing = _preprocessing(task, tensors.shape[-1])
    with whole(path) as partial, partial.open("wb") as stream:
        arrays = Reference.of_classifier(tensors, output).arrays()
        np.savez(stream, allow_pickle=False, **arrays, **Pictures(files, preprocessing).arrays())


def write_labelled(task: LabelledTask, reference: Path, path: Path) -> None:
    """Write the labelled images of a model into `path` (.npz, see `models.labelled`).

    The function takes the input size and the number of classes from the file `reference` (.npz).

    Raises ExportError if an image cannot be read, or if the network has too few classes.
    """
    of_model = Reference.read(reference)
    (scores,), (images,) = of_model.answers[0].values(), of_model.inputs.values()
    if max(task.classes) >= len(scores):
        raise ExportError(
            f"{LABELS} has the class {max(task.classes)}, but {task.architecture} has only the"
            f" classes 0 to {len(scores) - 1}"
        )
    preprocessing = _preprocessing(task, images.shape[-1])
    files = [np.fromfile(name, np.uint8) for name in task.images]
    for name, file in zip(task.images, files, strict=True):
        try:
            preprocessing.tensor(file)
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise ExportError(f"{name} cannot be read as a PNG or JPEG image: {error}") from error
    labelled = Labelled(Pictures(files, preprocessing), np.array(task.classes, np.int64))
    with whole(path) as partial, partial.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **labelled.arrays())


def _preprocessing(task: ExportTask | LabelledTask, input_size: int) -> Preprocessing:
    """Return the preprocessing that converts an image file into an input of the network.

    If the network takes uint8 inputs, the preprocessing does not normalise the colours.
    """
    of_weights = preprocessing_for(task.architecture, task.weights, input_size)
    return replace(of_weights, normalises=task.request == "float32")


def preprocessing_for(architecture: str, weights: str, input_size: int) -> Preprocessing:
    """Return torchvision's preprocessing for the weights `weights` (see `networks.preset`).

    `input_size` is the height and width of the input of the network, in pixels.
    """
    own = preset(architecture, weights, input_size)
    return Preprocessing(
        resize_px=own.resize_size[0],
        crop_px=own.crop_size[0],
        mean=tuple(own.mean),
        std=tuple(own.std),
        resample=own.interpolation.name,
    )
