"""Define the task of the job that exports a network of timm, or a detection or segmentation network
of torchvision."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.tasks.own_examples import OwnExamples


class NetworkTask(Part):
    """The network to export, and the examples with which the job checks the export.

    `architecture` is timm/NAME, timm/NAME.TAG or torchvision/NAME. `weights` is "random" (seeded),
    the name of trained weights, or the path of a state_dict file. `seed` is the seed of random
    weights and of random examples. `input_size` is the height and width of the input in pixels, or
    None for the default of the architecture. `examples` defines the content of the requests. If the
    examples are images, the export resizes and scales them for the architecture.
    """

    architecture: str
    weights: str = "random"
    seed: int = 0
    input_size: int | None = None
    examples: OwnExamples = OwnExamples()
