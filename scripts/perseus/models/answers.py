"""Are answers right? Errors are held against the part of an answer that depends on the image.

Neither the size of the outputs nor a fixed threshold would notice a server that always gives the
same answer: a network can put out a large constant plus a small signal, and some random networks
put out 1e-9 altogether.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

TOLERANCES: Final = {"fp32": 1e-3, "fp16": 0.5, "bf16": 2.0, "int8": 3.0}
"""Largest relative error that rounding explains, by the precision of the arithmetic.

Measured over thirteen architectures with random weights: fp32 kernels of onnxruntime and OpenVINO
differ from torch by 2e-6 to 1.2e-4, bf16 by 0.04 to 1.1; the mean answer given to every image
differs by 3.6 to 6.7, the answers of other images by 6 or more. Over nine of them, networks in fp16
differ by 0.006 to 0.12 under onnxruntime on a CPU, and over ten in int8 by 0.5 to 3.3; no GPU
has been measured.
"""


def signal(outputs: Array) -> float:
    """Root mean square deviation of `outputs` (n, classes) from their mean over the n inputs."""
    return float(np.sqrt(np.mean(np.square(outputs - outputs.mean(axis=0), dtype=np.float64))))


def relative_error(answers: Array, expected: Array, scale: float) -> float:
    """max |answers - expected| / scale, with `scale` = signal(all expected outputs).

    Hold it against TOLERANCES. A wrong shape or a value that is not finite gives infinity.
    """
    if answers.shape != expected.shape or not np.isfinite(answers).all():
        return float("inf")
    return float(np.max(np.abs(answers.astype(np.float64) - expected))) / scale
