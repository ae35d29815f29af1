"""Define the examples for a model of the user."""

from __future__ import annotations

from perseus.study.base import Part


class Values(Part):
    """Range of seeded random values, both ends included."""

    low: float
    high: float


class Pixels(Part):
    """Preprocessing of pixels from 0 to 255: (pixel * scale - mean) / std.

    `mean` and `std` have one number, or one number for each channel. If `layout` is None, the
    layout follows from the shape of the input.
    """

    layout: str | None = None
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


class OwnExamples(Part):
    """Examples from a file of arrays, from image files, or from seeded random values.

    Random values have the default range of their type, unless `values` sets a range.
    """

    inputs: str | None = None
    images: tuple[str, ...] = ()
    pixels: Pixels = Pixels()
    values: Values | None = None
