"""The task of taking a user's own ONNX file."""

from __future__ import annotations

from perseus.study.base import Part


class OwnOnnxTask(Part):
    """What is asked of the file, which is an input of the job.

    seed: of random images.
    input_size: height and width in pixels; None where the file says it.
    images: files, preprocessed as torchvision does for resnet50; none for random images.
    """

    seed: int = 0
    input_size: int | None = None
    images: tuple[str, ...] = ()
