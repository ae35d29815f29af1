"""Generate random example inputs of models: images, or values of given types and shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from perseus.models.answers import Array
from perseus.models.tensors import DTYPES, Tensor, TensorSpec
from perseus.study.tasks.own_examples import Values


def random_images(count: int, size: int, seed: int) -> Array:
    """Return `count` random images, shape (count, 3, size, size), float32, with values around zero.

    Equal seeds give equal images. Each image is a grid of 1 x 1 to 16 x 16 coloured patches with a
    random contrast, plus noise. Noise alone is not enough: the pooling layers of a network average
    the noise, so the network would respond nearly equally to all images.
    """
    rng = np.random.default_rng([seed, size])
    images = np.empty((count, 3, size, size), np.float32)
    for number, image in enumerate(images):
        patches = 2 ** (number % 5)
        side = -(-size // patches)
        colours = np.kron(rng.standard_normal((3, patches, patches)), np.ones((side, side)))
        noise = rng.standard_normal((3, size, size))
        image[:] = rng.uniform(0.5, 2) * colours[:, :size, :size] + rng.uniform(0, 1) * noise
    return images


def random_pixels(images: Array) -> NDArray[np.uint8]:
    """Convert images from `random_images` into pixels (0 to 255)."""
    return np.clip(128 + 48 * images, 0, 255).astype(np.uint8)


def examples(
    inputs: Sequence[TensorSpec], count: int, seed: int, values: Values | None = None
) -> dict[str, Tensor]:
    """Return `count` seeded examples of each input, shape (count, *dims).

    The examples of an FP32 input for square images are `random_images`. For any other
    floating-point input, the numbers have a standard normal distribution. Integers of one byte take
    any value, because they may be pixels. Integers of several bytes may be words of a vocabulary,
    masks or indices. Their value is 0 or 1, because almost every model accepts 0 and 1. If `values`
    is given, all integers and floating-point numbers are uniformly distributed over this range.
    """
    rng = np.random.default_rng([seed, count])
    return {each.name: _values(each, count, seed, rng, values) for each in inputs}


def whole_range(values: Values) -> tuple[int, int]:
    """Return the lowest and the highest whole number in a range."""
    return math.ceil(values.low), math.floor(values.high)


def _values(
    of: TensorSpec, count: int, seed: int, rng: np.random.Generator, values: Values | None
) -> Tensor:
    dtype, shape = DTYPES[of.datatype], (count, *of.dims)
    if values and dtype.kind == "f":
        return rng.uniform(values.low, values.high, shape).astype(dtype)
    if values and dtype.kind in "iu":
        return rng.integers(*whole_range(values), shape, dtype, endpoint=True)
    match of:
        case TensorSpec(datatype="FP32", dims=(3, height, width)) if height == width:
            return random_images(count, height, seed)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if dtype in (np.uint8, np.int8):
        return np.frombuffer(rng.bytes(int(np.prod(shape))), dtype).reshape(shape)
    return rng.integers(0, 2, shape).astype(dtype)
