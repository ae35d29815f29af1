"""Define the examples (contents of requests) for a model of the user."""

from __future__ import annotations

from perseus.study.base import Part


class Values(Part):
    """Range of seeded random inputs, from `low` to `high` inclusive."""

    low: float
    high: float


class Pixels(Part):
    """Preprocessing of a pixel value from 0 to 255: (pixel * scale - mean) / std.

    `mean` and `std` have one number, or one number for each channel. If `layout` is None, the shape
    of the input determines the layout ("nchw" or "nhwc").
    """

    layout: str | None = None
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


class OwnExamples(Part):
    """Examples from a file of arrays, from image files, or from seeded random values.

    `values` is the range of random values; if `values` is None, the type of the input determines
    the range.
    """

    inputs: str | None = None
    images: tuple[str, ...] = ()
    pixels: Pixels = Pixels()
    values: Values | None = None
