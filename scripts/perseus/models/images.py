"""Read images from files, and write seeded random images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from perseus.models.networks import ExportError
from perseus.models.tensors import Tensor

PICTURE_PX: Final = (512, 384)
JPEG_QUALITY: Final = 90


def read_images(paths: Sequence[Path], transform: Callable[[Any], Any]) -> Tensor:
    """Read image files as one batch, shape (n, 3, H, W).

    `transform` (for example the result of `networks.preset`) converts an RGB image of Pillow into a
    tensor (3, H, W). Raises ExportError if a file is not a complete PNG or JPEG image.
    """
    from PIL import Image

    images = []
    for path in paths:
        try:
            with Image.open(path, formats=("PNG", "JPEG")) as file:
                image = file.convert("RGB")
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise ExportError(f"{path} cannot be read as a PNG or JPEG image: {error}") from error
        images.append(transform(image).numpy())
    return np.stack(images)


def random_pictures(folder: Path, count: int, seed: int) -> tuple[str, ...]:
    """Write `count` seeded random JPEG images of the size PICTURE_PX (width, height) into `folder`.
    Return the paths of the images.

    As in photos, the colours vary equally strongly over short and long distances, from 4 pixels to
    the size of the image (Field, Journal of the Optical Society of America, 1987). Therefore the
    size of the files and the time for decoding are similar to those of photos.
    """
    from PIL import Image

    rng = np.random.default_rng([seed, *PICTURE_PX])
    width, height = PICTURE_PX
    names = []
    for number in range(count):
        colours = np.full((height, width, 3), 128.0)
        for octave in range(8):
            for channel in range(3):
                grid = rng.normal(0, 24, (2**octave, 2**octave)).astype(np.float32)
                blown_up = Image.fromarray(grid).resize(PICTURE_PX, Image.Resampling.BICUBIC)
                colours[..., channel] += np.asarray(blown_up)
        names.append(str(folder / f"{number}.jpg"))
        picture = Image.fromarray(colours.clip(0, 255).astype(np.uint8))
        picture.save(names[-1], quality=JPEG_QUALITY)
    return tuple(names)
