"""Examples for a user's own model."""

from __future__ import annotations

from perseus.study.base import Part


class Values(Part):
    """The range of seeded values, both ends included."""

    low: float
    high: float


class Pixels(Part):
    """Preprocessing of pixels from 0 to 255: (pixel * scale - mean) / std, each one number, or one
    for each channel.

    If the layout is None, it follows from the input.
    """

    layout: str | None = None
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


class OwnExamples(Part):
    """A file of arrays, image files, or seeded values.

    Values have the default range of their type unless `values` sets it.
    """

    inputs: str | None = None
    images: tuple[str, ...] = ()
    pixels: Pixels = Pixels()
    values: Values | None = None
