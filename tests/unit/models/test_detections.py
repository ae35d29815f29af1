"""Tests that detections with equal scores are compared as a set, and other detections in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perseus.models.answers import TOLERANCES
from perseus.models.detections import ONE_IN
from perseus.models.reference import Reference

COUNT = 2 * ONE_IN
LIMIT = TOLERANCES["fp32"]


def found(seed=0, count=COUNT):
    """Return boxes, labels and scores.

    The scores of every two successive detections are nearly equal.
    """
    rng = np.random.default_rng(seed)
    scores = np.repeat(np.linspace(0.9, 0.1, -(-count // 2)), 2)[:count]
    scores[1::2] -= 1e-7
    return {
        "boxes": rng.uniform(0, 320, (count, 4)).astype(np.float32),
        "labels": rng.integers(1, 91, count),
        "scores": scores.astype(np.float32),
    }


def error(answer, expected=None):
    answers = [expected or found(), found(1)]
    images = {"input": np.zeros((2, 1), np.float32)}
    reference = Reference(images, answers, has_batches=False, sorted_by="scores")
    return reference.error([0], answer, reference.scales(LIMIT))


def with_rows(answer, *order):
    return {name: values[list(order)] for name, values in answer.items()}


def changed(answer, name, rows, by):
    values = answer[name].copy()
    values[rows] += by
    return answer | {name: values}


def test_equal_detections_have_no_error():
    assert error(found()) == 0
    assert error(found(count=0), found(count=0)) == 0


def test_detections_whose_scores_tie_come_in_any_order():
    swapped = with_rows(found(), *(i ^ 1 for i in range(COUNT)))
    assert error(swapped) < LIMIT


def test_one_detection_in_a_hundred_may_be_another_one():
    another = changed(found(), "boxes", [0, 50], 100)
    assert error(another) == 0
    assert error(changed(another, "boxes", [100], 100)) > LIMIT


@pytest.mark.parametrize(("name", "by"), [("boxes", 1.0), ("labels", 1), ("scores", 1e-3)], ids=str)
def test_every_output_is_compared(name, by):
    assert error(changed(found(), name, slice(3), by)) > LIMIT
    assert error(changed(found(count=1), name, slice(1), by), found(count=1)) > LIMIT


@pytest.mark.parametrize("precision", TOLERANCES)
def test_labels_that_are_all_wrong_exceed_every_tolerance(precision):
    assert error(changed(found(), "labels", slice(None), 1)) > TOLERANCES[precision]


def test_detections_whose_scores_differ_come_in_order():
    order = list(range(COUNT))
    order[:6] = [4, 5, 2, 3, 0, 1]
    assert error(with_rows(found(), *order)) > LIMIT


@pytest.mark.parametrize(
    "answer",
    [
        found(count=COUNT - 1),
        {name: values for name, values in found().items() if name != "labels"},
        changed(found(), "boxes", [7], np.nan),
    ],
    ids=["fewer", "without labels", "not finite"],
)
def test_what_is_no_such_set_has_an_infinite_error(answer):
    assert error(answer) == float("inf")


def test_the_file_of_a_reference_keeps_how_answers_are_compared(tmp_path):
    images = {"input": np.zeros((1, 1), np.float32)}
    written = Reference(images, [found()], has_batches=False, sorted_by="scores")
    written.write(tmp_path / "reference.npz")
    assert Reference.read(tmp_path / "reference.npz").sorted_by == "scores"
    replace(written, sorted_by="").write(tmp_path / "reference.npz")
    assert Reference.read(tmp_path / "reference.npz").sorted_by == ""
