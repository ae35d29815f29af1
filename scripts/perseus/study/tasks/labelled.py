"""Define the task of the job that collects the labelled images of a model."""

from __future__ import annotations

from perseus.study.base import Part


class LabelledTask(Part):
    """The labelled images of a classification model of torchvision, and the settings that determine
    their preprocessing.

    `architecture`, `weights` and `request` have the same values as in the model's `ExportTask`.
    `images` contains the paths of the image files. `classes` contains, for each image, the index of
    the correct class.
    """

    architecture: str
    weights: str
    request: str
    images: tuple[str, ...]
    classes: tuple[int, ...]
