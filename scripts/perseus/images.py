"""The images that a network is asked about."""

from __future__ import annotations

import numpy as np

from perseus.answers import Array


def random_images(count: int, size: int, seed: int) -> Array:
    """`count` seeded images (count, 3, size, size), float32, around zero.

    Patches of colour, from one to 16 x 16 per image in turn, under noise, at various contrasts.
    Images of noise alone look alike to a network once they are pooled: their signal is weaker.
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
