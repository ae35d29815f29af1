"""Tests of the inputs of a user's own model: arrays in a file, images, or noise in a range."""

from __future__ import annotations

from zipfile import ZipFile

import numpy as np
import pytest
from PIL import Image

from perseus.models.networks import ExportError
from perseus.models.own_examples import example_problems, own_examples
from perseus.models.tensors import TensorSpec
from perseus.study.image_files import MAX_EXAMPLES
from perseus.study.tasks.own_examples import OwnExamples, Pixels, Values

TOKENS, MASK = TensorSpec("tokens:0", "INT64", (6,)), TensorSpec("in/mask", "FP32", (6, 2))
WIDE = TensorSpec("x", "FP32", (3, 8, 12))


def saved(folder, **changes):
    """Write examples for both inputs. `changes` replaces arrays; None removes one."""
    arrays = {"tokens:0": np.arange(30).reshape(5, 6), "in/mask": np.ones((5, 6, 2), np.float32)}
    arrays |= changes
    np.savez(folder / "samples.npz", **{k: v for k, v in arrays.items() if v is not None})
    return OwnExamples(inputs=str(folder / "samples.npz"))


def test_the_arrays_of_a_file_are_sent_by_name(tmp_path):
    given = own_examples(saved(tmp_path), [TOKENS, MASK], seed=1)
    np.testing.assert_array_equal(given["tokens:0"], np.arange(30).reshape(5, 6))
    assert given["in/mask"].shape == (5, 6, 2)
    many = saved(tmp_path, **{"tokens:0": np.zeros((99, 6), np.int64), "in/mask": None})
    assert len(own_examples(many, [TOKENS], seed=1)["tokens:0"]) == MAX_EXAMPLES


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"in/mask": None},
            "no array for the model's input 'in/mask' (arrays in the file: 'tokens:0')",
        ),
        ({"more": np.ones(5)}, "an array 'more', but the model has only the inputs 'tokens:0', "),
        ({"tokens:0": np.ones((5, 6))}, "'tokens:0' is of type float64, but the model takes int64"),
        (
            {"in/mask": np.ones((5, 2, 6), np.float32)},
            "has the shape (5, 2, 6), but must have the shape (examples, 6, 2)",
        ),
        (
            {"in/mask": np.ones((), np.float32)},
            "has the shape (), but must have the shape (examples, 6, 2)",
        ),
        (
            {"in/mask": np.ones((4, 6, 2), np.float32)},
            "has 5 examples of 'tokens:0', 4 examples of 'in/mask': all arrays",
        ),
        ({"in/mask": np.full((5, 6, 2), np.inf, np.float32)}, "'in/mask' has values that are not"),
        (
            {"tokens:0": np.array([{}] * 5)},
            "is not an .npz file of arrays (Object arrays cannot be",
        ),
    ],
)
def test_what_is_wrong_with_a_file_of_examples_is_one_sentence(tmp_path, changes, why):
    (message,) = example_problems(saved(tmp_path, **changes), [TOKENS, MASK])
    assert (
        message.startswith(f"inputs: {tmp_path}/samples.npz")
        and why in message
        and "\n" not in message
    )
    with pytest.raises(ExportError, match=r"samples\.npz"):
        own_examples(saved(tmp_path, **changes), [TOKENS, MASK], seed=1)


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    wrong = saved(tmp_path, **{"tokens:0": np.ones((5, 7)), "more": np.ones(5)})
    assert len(list(example_problems(wrong, [TOKENS, MASK]))) == 3


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 cut"])
def test_a_file_that_holds_no_arrays_is_told(tmp_path, content):
    (tmp_path / "samples.npz").write_bytes(content)
    asked = OwnExamples(inputs=str(tmp_path / "samples.npz"))
    (message,) = example_problems(asked, [TOKENS])
    assert "samples.npz is not an .npz file of arrays" in message and "\n" not in message


def test_a_damaged_file_and_a_foreign_part_of_a_file_are_told(tmp_path):
    path = tmp_path / "samples.npz"
    np.savez_compressed(path, **{"tokens:0": np.arange(600).reshape(100, 6) ** 3})
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * 9 + content[109:])
    (message,) = example_problems(OwnExamples(inputs=str(path)), [TOKENS])
    assert "samples.npz is not an .npz file of arrays (Error -3 while decompressing" in message
    with ZipFile(path, "w") as file:
        file.writestr("tokens:0", b"text")
    (message,) = example_problems(OwnExamples(inputs=str(path)), [TOKENS])
    assert "an .npz file of arrays (its part 'tokens:0' is not an array): write" in message


def test_one_array_without_names_is_told(tmp_path):
    np.save(tmp_path / "one.npy", np.zeros((5, 6)))
    (message,) = example_problems(OwnExamples(inputs=str(tmp_path / "one.npy")), [TOKENS])
    assert (
        "one.npy is not an .npz file of arrays (it has one array, without a name): write" in message
    )


@pytest.fixture
def photos(tmp_path):
    """Return four images of one colour each: red 10, green 20 and blue 30 times their number."""
    names = []
    for number in range(1, 5):
        names.append(str(tmp_path / f"{number}.png"))
        Image.new("RGB", (40, 20), (10 * number, 20 * number, 30 * number)).save(names[-1])
    return tuple(names)


def test_images_become_what_the_study_says_in_either_layout(photos):
    pixels = Pixels(scale=0.5, mean=(1.0, 2.0, 3.0), std=(1.0, 1.0, 2.0))
    asked = OwnExamples(images=photos, pixels=pixels)
    first = own_examples(asked, [WIDE], seed=1)["x"]
    assert (first.shape, first.dtype) == ((4, 3, 8, 12), np.float32)
    np.testing.assert_allclose(first[1, :, 0, 0], [9, 18, 13.5])
    last = own_examples(asked, [TensorSpec("x", "FP32", (8, 12, 3))], seed=1)["x"]
    np.testing.assert_allclose(last, first.transpose(0, 2, 3, 1))


def test_pixels_stay_as_they_are_unless_the_study_says_more(photos):
    asked = OwnExamples(images=photos)
    raw = own_examples(asked, [TensorSpec("x", "UINT8", (8, 12, 3))], seed=1)["x"]
    assert raw.dtype == np.uint8 and list(raw[2, 0, 0]) == [30, 60, 90]
    grey = own_examples(asked, [TensorSpec("x", "FP32", (1, 8, 12))], seed=1)["x"]
    assert grey.shape == (4, 1, 8, 12)


@pytest.mark.parametrize(
    ("inputs", "pixels", "why"),
    [
        ([TOKENS, MASK], {}, "images: the model has 2 inputs ('tokens:0', 'in/mask'), but images"),
        ([MASK], {}, "three sizes, and either the first or the last must be the number of chann"),
        ([WIDE], {"layout": "nhwc"}, "and the last must be the number of channels: 1 or 3"),
        ([TensorSpec("x", "FP32", (3, 8, 3))], {}, "set layout: nchw or layout: nhwc"),
        ([WIDE], {"mean": (1.0, 2.0)}, "mean has 2 numbers, but the images have 3 channels"),
    ],
)
def test_images_that_do_not_fit_are_told(photos, inputs, pixels, why):
    asked = OwnExamples(images=photos, pixels=Pixels(**pixels))
    (message,) = example_problems(asked, inputs)
    assert why in message


def test_a_layout_decides_where_both_fit(photos):
    asked = OwnExamples(images=photos, pixels=Pixels(layout="nhwc"))
    given = own_examples(asked, [TensorSpec("x", "FP32", (3, 8, 3))], seed=1)["x"]
    np.testing.assert_allclose(given[0, 0, 0], [10, 20, 30])


@pytest.mark.parametrize(
    ("datatype", "low", "high"),
    [
        ("FP32", 0, 1e300),
        ("FP16", 0, 1e5),
        ("FP16", -1e5, 0),
        ("UINT8", 0, 256),
        ("UINT8", -1, 0),
        ("INT64", 0, 2.0**63),
        ("INT32", 0.2, 0.8),  # has no whole number
    ],
)
def test_a_range_beyond_the_type_of_an_input_is_told(datatype, low, high):
    asked = OwnExamples(values=Values(low=low, high=high))
    (said,) = example_problems(asked, [TensorSpec("x", datatype, (6,))])
    assert said.startswith(f"values: the input 'x' of type {datatype} cannot take values from ")


def test_noise_has_the_range_that_the_study_says():
    asked = OwnExamples(values=Values(low=7, high=9))
    given = own_examples(asked, [TOKENS, MASK], seed=1)
    assert set(np.unique(given["tokens:0"])) == {7, 8, 9}
    assert 7 <= given["in/mask"].min() < given["in/mask"].max() <= 9
    (message,) = example_problems(
        OwnExamples(values=Values(low=0, high=300)), [TensorSpec("b", "INT8", (6,)), MASK]
    )
    assert message == "values: the input 'b' of type INT8 cannot take values from 0 to 300"
