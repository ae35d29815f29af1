"""Tensors as Triton and numpy name them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Tensor = NDArray[Any]

DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "BOOL": np.dtype(np.bool_),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    **{f"INT{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
}
"""By Triton's names, all of its types but BYTES and BF16, which numpy has not."""

DATATYPES: Final = {dtype: name for name, dtype in DTYPES.items()}
"""Triton's names."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor of a model; `dims` without the batch, -1 where a size is open."""

    name: str
    datatype: str
    dims: tuple[int, ...]
