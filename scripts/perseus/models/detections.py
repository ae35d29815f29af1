"""Compare the objects that a detection network finds with the expected objects (detections).

Rounding can change the order of the detections, and can replace a few detections by others.
Therefore the comparison accepts another order and a few wrong detections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perseus.models.answers import wrong_to_right
from perseus.models.tensors import Tensor

TIE: Final = 1e-4
"""Two scores are tied if their difference is at most this share of the largest score. The
comparison accepts any order of detections with tied scores.

Source: in ssdlite320_mobilenet_v3_large, the scores of torch and ONNX Runtime differ by 1e-6 to
1e-5 of the largest score. In descending order, up to 16 % of the pairs of consecutive scores differ
by less than 1e-6.
"""
ONE_IN: Final = 100
"""Number of detections among which the comparison accepts one wrong detection. A network drops
detections that overlap with other detections, and returns only a limited number of detections. If
two detections have nearly equal scores, rounding can decide which of them the network drops."""


def detections_error(
    answer: Mapping[str, Tensor],
    expected: Mapping[str, Tensor],
    scales: Mapping[str, float],
    sorted_by: str,
) -> float:
    """Return the largest relative error of the detections in a response.

    Row i of each output describes detection i. `sorted_by` is the name of the output with the
    scores. The function pairs each expected detection with the most similar detection of the
    response that has a tied score (see TIE). The error of a pair with different labels is at least
    1. Of n pairs, the function ignores the n // ONE_IN pairs with the largest errors. The result is
    the largest error of the other pairs. If the labels of these pairs together have a larger error
    (see `wrong_to_right`), the result is the error of the labels.

    The result is infinite if outputs are missing, if the number of detections is wrong, if values
    are not finite, or if the scores are not in descending order.
    """
    if any(
        name not in answer or answer[name].shape != of.shape or not np.isfinite(answer[name]).all()
        for name, of in expected.items()
    ):
        return float("inf")
    scores, wanted = answer[sorted_by], expected[sorted_by]
    tie = TIE * np.max(np.abs(wanted), initial=0.0)
    if np.any(np.diff(scores) > tie):
        return float("inf")
    left = np.arange(len(scores))
    matched, errors = np.zeros(len(wanted), int), np.zeros(len(wanted))
    for i, score in enumerate(wanted):
        near = left[np.abs(scores[left] - score) <= tie]
        near = near if near.size else left[:1]
        differences = [
            _differences(answer[name][near], of[i], scales[name]) for name, of in expected.items()
        ]
        error = np.max(differences, axis=0)
        matched[i], errors[i] = near[error.argmin()], error.min()
        left = left[left != matched[i]]
    kept = np.argsort(errors)[: len(errors) - len(errors) // ONE_IN]
    labels = [
        wrong_to_right(answer[name][matched[kept]] != of[kept])
        for name, of in expected.items()
        if of.dtype.kind in "iub"
    ]
    return max([*errors[kept].tolist(), *labels], default=0.0)


def _differences(rows: Tensor, expected: Tensor, scale: float) -> NDArray[np.float64]:
    """For each row, return the largest difference from the expected row, relative to `scale`."""
    flat, of = rows.reshape(len(rows), -1), expected.reshape(-1)
    if rows.dtype.kind in "iub":
        return np.any(flat != of, axis=1).astype(np.float64)
    error = np.max(np.abs(flat.astype(np.float64) - of), axis=1, initial=0.0)
    return np.where(error > 0, error / max(scale, np.finfo(np.float64).tiny), 0.0)
