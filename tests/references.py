"""Functions that read and write reference.npz of image classifiers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from perseus.models.reference import Reference


def images_and_scores(path: Path):
    """Return images (n, 3, height, width) and scores (n, classes)."""
    reference = Reference.read(path)
    return reference.inputs["input"], np.stack(reference.all_answers("output"))


def write_reference(path: Path, images, scores) -> Path:
    Reference.of_classifier(images, scores).write(path)
    return path
