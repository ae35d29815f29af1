"""What a user's own model is asked."""

from __future__ import annotations

from perseus.study.base import Part


class Values(Part):
    """The range of seeded values, both ends included."""

    low: float
    high: float


class Pixels(Part):
    """What becomes of the pixels of an image, 0 to 255: (pixel * scale - mean) / std, in a layout
    that the input tells if it is None. One number each, or one for each channel."""

    layout: str | None = None
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


class OwnExamples(Part):
    """A file of arrays, files of images, or seeded values, of the range that each type has unless
    `values` says it."""

    inputs: str | None = None
    images: tuple[str, ...] = ()
    pixels: Pixels = Pixels()
    values: Values | None = None
