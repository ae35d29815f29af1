"""Define the task: collect the labelled images of a model."""

from __future__ import annotations

from perseus.study.base import Part


class LabelledTask(Part):
    """The labelled images of a classification model of torchvision, and the settings of its
    preprocessing.

    `architecture`, `weights` and `request` have the same values as in the model's `ExportTask`.
    `images` has the image files, and `classes` the index of the correct class of each image.
    """

    architecture: str
    weights: str
    request: str
    images: tuple[str, ...]
    classes: tuple[int, ...]
