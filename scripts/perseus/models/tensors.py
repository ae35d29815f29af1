"""Describe tensors with the types of Triton and numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Tensor = NDArray[Any]

OPEN: Final = -1
"""Value in `dims` for a variable size."""

DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "BOOL": np.dtype(np.bool_),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    **{f"INT{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
}
"""The numpy type of each data type of Triton, by Triton's name of the type. BYTES and BF16 are
missing, since numpy has no such types."""

DATATYPES: Final = {dtype: name for name, dtype in DTYPES.items()}
"""Triton's name of each data type, by its numpy type."""


@dataclass(frozen=True)
class TensorSpec:
    """An input or output of a model.

    `dims` has the sizes of the tensor without the batch size. The size -1 means a variable size.
    """

    name: str
    datatype: str
    dims: tuple[int, ...]

    def __str__(self) -> str:
        sizes = " x ".join("?" if size == OPEN else str(size) for size in self.dims)
        return f"{self.name!r} {self.datatype} ({sizes})"


@dataclass(frozen=True)
class ModelTensors:
    """The inputs and outputs of a model.

    If `has_batches` is false, a request contains only one example.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    has_batches: bool = True

    def plain(self) -> dict[str, Any]:
        """Return the inputs and outputs as in an export record (check.json)."""
        return {
            "inputs": [asdict(each) | {"dims": list(each.dims)} for each in self.inputs],
            "outputs": [asdict(each) | {"dims": list(each.dims)} for each in self.outputs],
            "has_batches": self.has_batches,
        }

    @classmethod
    def of(cls, check: Mapping[str, Any]) -> ModelTensors:
        """Return the inputs and outputs in an export record (the content of check.json)."""
        inputs, outputs = (
            tuple(TensorSpec(each["name"], each["datatype"], tuple(each["dims"])) for each in named)
            for named in (check["inputs"], check["outputs"])
        )
        return cls(inputs, outputs, check["has_batches"])

    @classmethod
    def of_classifier(
        cls, image: tuple[int, ...], classes: int, datatype: str = "FP32"
    ) -> ModelTensors:
        """Return the input and the output of a classification model.

        The input is an image with the sizes `image` (channels, height, width). The output is one
        score per class.
        """
        return cls(
            (TensorSpec("input", datatype, image),), (TensorSpec("output", "FP32", (classes,)),)
        )


def closings(dims: Sequence[int], given: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the possible shapes of a tensor.

    `dims` has the sizes that the model file declares, and `given` the sizes that the user states:
    either all sizes of the tensor, or only its variable sizes. The result is empty if `given`
    contradicts `dims`.
    """
    found = []
    if list(dims).count(OPEN) == len(given):
        left = iter(given)
        found.append(tuple(next(left) if size == OPEN else size for size in dims))
    if len(dims) == len(given):
        pairs = zip(dims, given, strict=True)
        if all(size in (OPEN, mine) for size, mine in pairs):
            found.append(tuple(given))
    return found
