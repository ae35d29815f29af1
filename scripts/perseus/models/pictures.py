"""Read and write pictures.npz: encoded images (PNG or JPEG files) for requests.

The file also contains the tensors into which the preprocessing converts these images, and the
outputs that torch computes from these tensors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perseus.models.preprocess import PARAMETER, Preprocessing

File = NDArray[np.uint8]
"""Bytes of an image file, shape (n,)."""


@dataclass(frozen=True)
class Pictures:
    """Encoded image files, and the preprocessing that converts them into inputs of the network."""

    files: Sequence[File]
    preprocessing: Preprocessing

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of pictures.npz that contain the images and their preprocessing."""
        told = json.dumps(asdict(self.preprocessing))
        files = {f"picture_{i}": file for i, file in enumerate(self.files)}
        return {PARAMETER: np.array(told), **files}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Pictures:
        """Return the encoded images and the preprocessing from the arrays of pictures.npz."""
        told = json.loads(str(arrays[PARAMETER]))
        count = sum(name.startswith("picture_") for name in arrays)
        return cls([arrays[f"picture_{i}"] for i in range(count)], Preprocessing(**told))

    @classmethod
    def read(cls, path: Path) -> Pictures:
        with np.load(path) as arrays:
            return cls.of(arrays)


def as_batch(files: Sequence[File]) -> NDArray[np.uint8]:
    """Return image files as one array of bytes, shape (files, length of the longest file).

    Zeros fill the rows of shorter files. These zeros are harmless, because image decoders ignore
    zeros after the end of a file.
    """
    longest = max(map(len, files))
    return np.stack([np.pad(file, (0, longest - len(file))) for file in files])
