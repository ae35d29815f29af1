"""Define where the examples (contents of requests) for a model of the user come from."""

from __future__ import annotations

from perseus.study.base import Part


class Values(Part):
    """Range of seeded random inputs, from `low` to `high` inclusive."""

    low: float
    high: float


class Pixels(Part):
    """Preprocessing of a pixel value from 0 to 255: (pixel * scale - mean) / std.

    `mean` and `std` contain one number for all channels, or one number for each channel. `layout`
    is "nchw" or "nhwc", or None. If it is None, the layout follows from the shape of the input.
    """

    layout: str | None = None
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


class OwnExamples(Part):
    """The source of the examples: the file `inputs` with arrays, or the image files `images`.

    If both `inputs` and `images` are empty, the examples are seeded random values. `pixels` defines
    the preprocessing of images. `values` is the range of random values, or None. If it is None, the
    range follows from the type of the input.
    """

    inputs: str | None = None
    images: tuple[str, ...] = ()
    pixels: Pixels = Pixels()
    values: Values | None = None
