"""Check the responses of a server against reference responses.

The error of a response is stated relative to the signal: how much the responses to different images
differ.

An error relative to the size of the outputs, or a fixed threshold, would not detect a server that
always gives the same response. The outputs of a neural network can be a large constant plus a small
part that depends on the image, and some random networks have outputs of about 1e-9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perseus.models.tensors import Tensor

Array = NDArray[np.float32]

TOLERANCES: Final = {"fp32": 1e-3, "fp16": 0.5, "bf16": 2.0, "int8": 3.0}
"""Largest relative error of a response that rounding can explain, by numeric precision.

Relative errors measured on thirteen architectures with random weights: fp32 kernels of onnxruntime
and OpenVINO differ from torch by 2e-6 to 1.2e-4, and bf16 kernels by 0.04 to 1.1. A server that
gives the mean response to every image has an error of 3.6 to 6.7. A server that confuses images has
an error of 6 or more. Under onnxruntime on a CPU, nine architectures in fp16 differ from torch by
0.006 to 0.12, and ten architectures in int8 by 0.5 to 3.3. No GPU has been measured.
"""


REPEATED: Final = TOLERANCES["fp16"]
"""For a model with an unknown numeric precision: largest relative difference between two responses
to the same request that rounding can explain."""


def signal(outputs: Tensor) -> float:
    """Return the root mean square deviation of `outputs` (n, classes) from their mean over the n
    inputs."""
    return float(np.sqrt(np.mean(np.square(outputs - outputs.mean(axis=0), dtype=np.float64))))


def repeated_error(answers: Sequence[Tensor], again: Sequence[Tensor]) -> float:
    """Return the largest difference between two runs of the same requests, relative to the signal.

    `answers` and `again` contain the responses of the first and of the second run. The result is
    max |again - answers| / s. s is the `signal` of `answers`, or the standard deviation of all
    their numbers if the responses have several shapes.

    The result is infinite if the shapes in `answers` and `again` differ, or if a value is not
    finite. If all responses in `answers` are equal, any difference makes the result infinite.
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
"""A difference of at most this share of the largest value in an output counts as rounding, even if
the responses to different inputs hardly differ.

Measured on ten public detection, text recognition and classification models with noise as input,
relative to the largest value: OpenVINO and ONNX Runtime in fp32 differ from each other by 3e-7 to
2e-5, and the responses to different inputs by 1e-3 to 7e-2.
"""


def scale_of(answers: Sequence[Tensor], tolerance: float) -> float:
    """Return the divisor that makes the errors of an output relative; 0 if all its responses are 0
    or empty.

    The divisor is `signal`, or the standard deviation of all numbers if the responses have several
    shapes. The divisor is at least so large that an error of ROUNDING times the largest value stays
    within `tolerance`.
    """
    numbers = [each.astype(np.float64) for each in answers]
    flat = np.concatenate([each.ravel() for each in numbers])
    if not flat.size:
        return 0.0
    alike = len({each.shape for each in numbers}) == 1
    spread = signal(np.stack(numbers)) if alike else float(np.std(flat))
    return max(spread, float(np.max(np.abs(flat))) * ROUNDING / tolerance)


def relative_error(answer: Tensor, expected: Tensor, scale: float) -> float:
    """Return the relative error of a response: max |answer - expected| / scale.

    `scale` is the result of `scale_of` or `signal` for all expected responses.

    For booleans, and for integers wider than a byte, which may be class numbers, the error is the
    share of values that differ. TOLERANCES has the largest allowed errors. A wrong shape or a value
    that is not finite makes the error infinite.
    """
    if answer.shape != expected.shape or not np.isfinite(answer).all():
        return float("inf")
    if answer.dtype == bool or (answer.dtype.kind in "iu" and answer.dtype.itemsize > 1):
        return float(np.mean(answer != expected)) if answer.size else 0.0
    error = float(np.max(np.abs(answer.astype(np.float64) - expected), initial=0.0))
    if error == 0:
        return 0.0
    return error / scale if scale > 0 else float("inf")
