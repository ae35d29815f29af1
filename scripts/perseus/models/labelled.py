"""Read and write labelled.npz: image files with the correct class of each image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perseus.models.pictures import Pictures

CLASSES = "classes"


@dataclass(frozen=True)
class Labelled:
    """Encoded images with their correct classes, and the preprocessing of a network.

    `classes` has the correct class of each image, shape (n,). A class is an index into the scores
    of the network.
    """

    pictures: Pictures
    classes: NDArray[np.int64]

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return the arrays that labelled.npz contains."""
        return {**self.pictures.arrays(), CLASSES: self.classes}

    def tensors(self, images: Sequence[int]) -> NDArray[Any]:
        """Return the network inputs for images with these indices, shape (len(images), 3, H, W)."""
        files, preprocessing = self.pictures.files, self.pictures.preprocessing
        return np.stack([preprocessing.tensor(files[i]) for i in images])

    @classmethod
    def read(cls, path: Path) -> Labelled:
        with np.load(path) as arrays:
            return cls(Pictures.of(arrays), arrays[CLASSES])
