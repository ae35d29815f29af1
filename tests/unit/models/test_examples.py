"""Tests of the requests for a model of which only types and shapes are known."""

import numpy as np
import pytest

from perseus.models.answers import TOLERANCES, relative_error, repeated_error, scale_of
from perseus.models.examples import examples, random_images
from perseus.models.tensors import DTYPES, TensorSpec


@pytest.mark.parametrize("datatype", DTYPES)
@pytest.mark.parametrize("dims", [(), (5,), (2, 3)])
def test_every_type_and_shape_has_its_values_the_same_at_every_call(datatype, dims):
    specs = [TensorSpec("a", datatype, dims), TensorSpec("b", "FP32", (1,))]
    made, again, other = (examples(specs, 4, seed) for seed in (1, 1, 2))
    assert list(made) == ["a", "b"]
    assert (made["a"].dtype, made["a"].shape) == (DTYPES[datatype], (4, *dims))
    np.testing.assert_array_equal(made["a"], again["a"])
    assert not np.array_equal(made["b"], other["b"])


def test_whole_numbers_are_those_that_a_model_of_their_width_takes():
    wide, byte, signed, flag = (
        examples([TensorSpec("a", name, (1000,))], 4, 0)["a"]
        for name in ("INT64", "UINT8", "INT8", "BOOL")
    )
    assert set(np.unique(wide)) == {0, 1} and set(np.unique(flag)) == {False, True}
    assert (byte.min(), byte.max()) == (0, 255)
    assert (signed.min(), signed.max()) == (-128, 127)


def test_square_images_are_images():
    (made,) = examples([TensorSpec("data", "FP32", (3, 32, 32))], 4, 1).values()
    np.testing.assert_array_equal(made, random_images(4, 32, 1))
    (wide,) = examples([TensorSpec("data", "FP32", (3, 32, 48))], 4, 1).values()
    assert wide.shape == (4, 3, 32, 48)


# The responses to two requests

ANSWERS = [np.array([100.0, 1.0]), np.array([100.0, 3.0])]


@pytest.mark.parametrize(
    ("again", "error"),
    [
        (ANSWERS, 0.0),
        # relative to the part that differs between the two responses
        ([ANSWERS[0], np.array([100.0, 3.5])], 0.5 / np.sqrt(0.5)),
        ([ANSWERS[0], np.array([100.0, np.nan])], np.inf),
        ([ANSWERS[0], np.array([100.0])], np.inf),
        ([ANSWERS[0]], np.inf),
    ],
)
def test_an_error_is_relative_to_what_answers_differ_by(again, error):
    assert repeated_error(ANSWERS, again) == pytest.approx(error)


def test_answers_of_all_types_and_of_several_shapes_are_compared():
    for dtype in DTYPES.values():
        first = [np.array([0, 1], dtype), np.array([1, 0], dtype)]
        assert repeated_error(first, first) == 0
        assert repeated_error(first, first[::-1]) == 2
    boxes = [np.zeros((0, 4)), np.ones((2, 4)), np.full((1, 4), 3.0)]
    assert repeated_error(boxes, boxes) == 0
    assert repeated_error(boxes, [*boxes[:2], boxes[2] + 1]) == pytest.approx(
        1 / np.std([1] * 8 + [3] * 4)
    )


def test_where_answers_are_all_alike_they_must_stay_so():
    same = [np.ones(2), np.ones(2)]
    assert repeated_error(same, same) == 0
    assert repeated_error(same, [np.ones(2), np.full(2, 1.001)]) == np.inf


def test_rounding_of_one_response_is_relative_to_all_its_numbers():
    answer = np.random.default_rng(0).normal(size=50)
    rounded = answer * (1 + 0.004 * np.sign(answer))
    tolerance = TOLERANCES["bf16"]
    assert 0 < relative_error(rounded, answer, scale_of([answer], tolerance)) < 0.1
    assert relative_error(np.roll(answer, 1), answer, scale_of([answer], tolerance)) > tolerance
    assert 0 < repeated_error([answer] * 3, [answer, rounded, answer], is_one_example=True) < 0.1
    assert repeated_error([answer] * 3, [answer, rounded, answer]) > 1e6


@pytest.mark.parametrize("precision", TOLERANCES)
@pytest.mark.parametrize("dtype", [np.int64, bool])
def test_a_response_of_wrong_class_numbers_exceeds_every_tolerance(precision, dtype):
    right, tolerance = np.zeros(10_000, dtype), TOLERANCES[precision]
    assert relative_error(right, right, 1.0) == 0 == relative_error(right[:0], right[:0], 0.0)
    assert relative_error(~right, right, 1.0) > tolerance
    assert relative_error(~right[:2], right[:2], 1.0) > tolerance
    few = np.arange(10_000) < int(10_000 * tolerance / (1 + 2 * tolerance))
    assert relative_error(few.astype(dtype), right, 1.0) <= tolerance


def test_rounding_may_change_the_only_class_number_of_a_response():
    error = relative_error(np.array([3]), np.array([4]), 1.0)
    assert TOLERANCES["fp16"] < error <= TOLERANCES["bf16"]
