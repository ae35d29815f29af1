"""Check the responses of a server against reference responses.

The relative error of a response is its difference from the reference response, divided by the
signal. The signal measures how much the reference responses to different images differ from each
other.

Perseus does not divide by the largest output: an output may be a large constant plus a small part
that depends on the image, and then even a wrong response would have a small error. Perseus sets no
absolute limit for the difference: in some networks with random weights, all outputs are below
0.004, so even a wrong response could stay within such a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perseus.models.tensors import Tensor

Array = NDArray[np.float32]

TOLERANCES: Final = {"fp32": 1e-3, "fp16": 0.5, "bf16": 2.0, "int8": 3.0}
"""Largest relative error that rounding can cause in a response, for each numeric precision. A
response with a larger error is wrong.

The responses of ONNX Runtime and OpenVINO on a CPU were compared with the outputs that torch
computes. For thirteen architectures with random weights, the relative error was 1e-6 to 4e-5 in
fp32, and 0.04 to 0.17 in bf16. In ONNX Runtime on a CPU, the relative error was 0.007 to 0.016 in
fp16, and 0.5 to 1.0 in int8 (thirteen architectures each). Trained weights and photos can have
larger errors. For comparison, a server that gives the mean response to every image has a relative
error of 3.7 to 9.1, and a server that returns the response to another image has a relative error of
5 or more (78 architectures). No errors on a GPU have been measured.
"""


REPEATED: Final = TOLERANCES["fp16"]
"""Largest relative difference that rounding can cause between two responses to one request. Perseus
uses this tolerance for a model whose numeric precision is unknown."""


def signal(outputs: Tensor) -> float:
    """Return how much the outputs for different inputs differ from each other.

    `outputs` has the shape (n, classes). The result is the root-mean-square deviation of the n
    outputs from the mean output.
    """
    return float(np.sqrt(np.mean(np.square(outputs - outputs.mean(axis=0), dtype=np.float64))))


def _spread(answers: Sequence[Tensor]) -> float:
    """Return the `signal` of responses. For a single response, and for responses of different
    shapes, return the standard deviation of all numbers in the responses."""
    if len(answers) > 1 and len({each.shape for each in answers}) == 1:
        return signal(np.stack(answers))
    return float(np.std(np.concatenate([each.ravel() for each in answers])))


def repeated_error(
    answers: Sequence[Tensor], again: Sequence[Tensor], *, is_one_example: bool = False
) -> float:
    """Return the largest difference between two runs of the same requests, relative to the signal.

    `answers` and `again` contain the responses of the first and of the second run. The result is
    max |again - answers| / (`signal` of `answers`). There are two exceptions. If the responses to
    different requests differ in shape, the divisor is the standard deviation of all numbers in
    `answers`. If all requests have the same example (`is_one_example`), the divisor is the standard
    deviation of the numbers in the first response.

    The result is infinite if the responses of the two runs differ in shape, or if a value is not
    finite. If the divisor is 0, any difference between the two runs makes the result infinite.
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
    scale = _spread(first[:1] if is_one_example else first)
    return error / scale if scale > 0 else float("inf")


ROUNDING: Final = 1e-4
"""Largest change of an output by rounding, as a share of the largest value of the output. This
limit is necessary for outputs that hardly depend on the input, because their signal is close to 0.

Source: ten public detection, text recognition and classification models with noise as input. The
outputs of OpenVINO and ONNX Runtime in fp32 differ by 3e-7 to 2e-5 of the largest value. The
outputs for two different inputs differ by 1e-3 to 7e-2 of the largest value.
"""


def scale_of(answers: Sequence[Tensor], tolerance: float) -> float:
    """Return the divisor that converts an error of an output into a relative error.

    The result is 0 if all values of the output are 0, or if the output is empty. Otherwise, the
    divisor is the larger of two values. The first value is the `signal` of the responses. For a
    single response, and for responses of different shapes, the first value is the standard
    deviation of all numbers in the responses. The second value is (largest absolute value of the
    output) x ROUNDING / `tolerance`. With this divisor, the relative error that rounding causes is
    within the tolerance.
    """
    numbers = [each.astype(np.float64) for each in answers]
    if not any(each.size for each in numbers):
        return 0.0
    largest = max(float(np.max(np.abs(each), initial=0.0)) for each in numbers)
    return max(_spread(numbers), largest * ROUNDING / tolerance)


def relative_error(answer: Tensor, expected: Tensor, scale: float) -> float:
    """Return the relative error of a response: max |answer - expected| / scale.

    `scale` is the result of `scale_of` or `signal` for the expected responses to all examples.

    Booleans and integers of several bytes may stand for classes, so their differences have no
    meaning. For values of these types, the error is the result of `wrong_to_right`. The error is
    infinite if the response has a wrong shape or a value that is not finite.
    """
    if answer.shape != expected.shape or not np.isfinite(answer).all():
        return float("inf")
    if answer.dtype == bool or (answer.dtype.kind in "iu" and answer.dtype.itemsize > 1):
        return wrong_to_right(answer != expected)
    error = float(np.max(np.abs(answer.astype(np.float64) - expected), initial=0.0))
    if error == 0:
        return 0.0
    return error / scale if scale > 0 else float("inf")


def wrong_to_right(is_wrong: Tensor) -> float:
    """Return the number of wrong values, divided by the number of right values plus 0.5.

    The 0.5 keeps the error finite if all values are wrong. If an output has only one value, and
    this value is wrong, the error is 2. The tolerances for bf16 and int8 accept this error, because
    rounding can change which class has the largest score. If an output has two or more values, and
    all values are wrong, the error is at least 4.
    """
    wrong = int(np.count_nonzero(is_wrong))
    return wrong / (np.size(is_wrong) - wrong + 0.5)
