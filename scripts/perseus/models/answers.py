"""Check answers: errors are compared with the part of an answer that depends on the image.

Neither the size of the outputs nor a fixed threshold would detect a server that always gives the
same answer. The outputs of a network can be a large constant plus a small signal, and some random
networks have outputs of about 1e-9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perseus.models.tensors import Tensor

Array = NDArray[np.float32]

TOLERANCES: Final = {"fp32": 1e-3, "fp16": 0.5, "bf16": 2.0, "int8": 3.0}
"""Largest relative error that rounding explains, by the precision of the arithmetic.

Measured over thirteen architectures with random weights: fp32 kernels of onnxruntime and
OpenVINO differ from torch by 2e-6 to 1.2e-4, bf16 by 0.04 to 1.1. The mean answer, given to
every image, differs by 3.6 to 6.7, and the answers to other images by 6 or more. Over nine
architectures, networks in fp16 differ by 0.006 to 0.12 under onnxruntime on a CPU, and over ten
in int8 by 0.5 to 3.3. No GPU has been measured.
"""


REPEATED: Final = TOLERANCES["fp16"]
"""The same between two answers to the same request, for a model with an unknown precision."""


def signal(outputs: Tensor) -> float:
    """Return the root mean square deviation of `outputs` (n, classes) from their mean over the n
    inputs."""
    return float(np.sqrt(np.mean(np.square(outputs - outputs.mean(axis=0), dtype=np.float64))))


def repeated_error(answers: Sequence[Tensor], again: Sequence[Tensor]) -> float:
    """Return max |again - answers|, relative to the differences between the answers to several
    requests.

    These differences are `signal`, or if the answers have several shapes, the deviation of all
    their numbers. The result is infinite for other shapes, for values that are not finite and, if
    all answers are equal, for any difference.
    """
    if [each.shape for each in answers] != [each.shape for each in again]:
        return float("inf")
    first, second = ([each.astype(np.float64) for each in part] for part in (answers, again))
    if not all(np.isfinite(each).all() for each in (*first, *second)):
        return float("inf")
    pairs = zip(first, second, strict=True)
    error = max(float(np.max(np.abs(b - a), initial=0.0)) for a, b in pairs)
    if error == 0:
        return 0.0
    if len({each.shape for each in first}) == 1:
        scale = signal(np.stack(first))
    else:
        scale = float(np.std(np.concatenate([each.ravel() for each in first])))
    return error / scale if scale > 0 else float("inf")


ROUNDING: Final = 1e-4
"""Share of the largest number of an output that is rounding, however small the differences of
answers are.

Measured over ten public detectors, recognisers and classifiers with noise as input: OpenVINO and
ONNX Runtime in fp32 differ by 3e-7 to 2e-5 of it, and the answers by 1e-3 to 7e-2.
"""


def scale_of(answers: Sequence[Tensor], tolerance: float) -> float:
    """Return the scale of the errors of an output, 0 if all its answers are 0 or empty.

    The scale is `signal`, or if answers have several shapes, the deviation of all their numbers. It
    is at least so large that ROUNDING is within the tolerance.
    """
    numbers = [each.astype(np.float64) for each in answers]
    flat = np.concatenate([each.ravel() for each in numbers])
    if not flat.size:
        return 0.0
    alike = len({each.shape for each in numbers}) == 1
    spread = signal(np.stack(numbers)) if alike else float(np.std(flat))
    return max(spread, float(np.max(np.abs(flat))) * ROUNDING / tolerance)


def relative_error(answer: Tensor, expected: Tensor, scale: float) -> float:
    """Return max |answer - expected| / scale, with the `scale` of all expected outputs.

    For booleans and for integers wider than a byte, which may be classes, it is the share of
    different values. TOLERANCES has its limits. A wrong shape or a value that is not finite gives
    infinity.
    """
    if answer.shape != expected.shape or not np.isfinite(answer).all():
        return float("inf")
    if answer.dtype == bool or (answer.dtype.kind in "iu" and answer.dtype.itemsize > 1):
        return float(np.mean(answer != expected)) if answer.size else 0.0
    error = float(np.max(np.abs(answer.astype(np.float64) - expected), initial=0.0))
    if error == 0:
        return 0.0
    return error / scale if scale > 0 else float("inf")
