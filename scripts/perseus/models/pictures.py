"""pictures.npz: pictures as they are sent, the tensors that they become, and torch's answers."""

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
"""The bytes of a picture's file, (n,)."""


@dataclass(frozen=True)
class Pictures:
    """Pictures as files, and what the network wants of them."""

    files: Sequence[File]
    preprocessing: Preprocessing

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As they stand in the file, beside a `Reference`."""
        told = json.dumps(asdict(self.preprocessing))
        files = {f"picture_{i}": file for i, file in enumerate(self.files)}
        return {PARAMETER: np.array(told), **files}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Pictures:
        """Those of a file that was opened."""
        told = json.loads(str(arrays[PARAMETER]))
        count = sum(name.startswith("picture_") for name in arrays)
        return cls([arrays[f"picture_{i}"] for i in range(count)], Preprocessing(**told))

    @classmethod
    def read(cls, path: Path) -> Pictures:
        with np.load(path) as arrays:
            return cls.of(arrays)


def as_batch(files: Sequence[File]) -> NDArray[np.uint8]:
    """(files, bytes of the longest): zeros follow those that are shorter, which decoders ignore."""
    longest = max(map(len, files))
    return np.stack([np.pad(file, (0, longest - len(file))) for file in files])
