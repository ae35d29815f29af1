"""pictures.npz: encoded images for requests, the tensors after preprocessing, and torch's
answers."""

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
"""The bytes of an image file, (n,)."""


@dataclass(frozen=True)
class Pictures:
    """Images as files, and the preprocessing of the network."""

    files: Sequence[File]
    preprocessing: Preprocessing

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for the file, beside those of a `Reference`."""
        told = json.dumps(asdict(self.preprocessing))
        files = {f"picture_{i}": file for i, file in enumerate(self.files)}
        return {PARAMETER: np.array(told), **files}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Pictures:
        """Return the images of an opened file."""
        told = json.loads(str(arrays[PARAMETER]))
        count = sum(name.startswith("picture_") for name in arrays)
        return cls([arrays[f"picture_{i}"] for i in range(count)], Preprocessing(**told))

    @classmethod
    def read(cls, path: Path) -> Pictures:
        with np.load(path) as arrays:
            return cls.of(arrays)


def as_batch(files: Sequence[File]) -> NDArray[np.uint8]:
    """Return (files, bytes of the longest): zeros pad shorter files, which decoders ignore."""
    longest = max(map(len, files))
    return np.stack([np.pad(file, (0, longest - len(file))) for file in files])
