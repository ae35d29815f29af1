"""The task of exporting a network of timm, or a detector or segmenter of torchvision."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.tasks.own_examples import OwnExamples


class NetworkTask(Part):
    """What to export, and what is asked of it.

    architecture: timm/NAME, timm/NAME.TAG or torchvision/NAME.
    weights: "random" (seeded), trained ones by name, or the path of a state_dict file.
    seed: of the random weights and of random examples.
    input_size: height and width in pixels; None takes what the architecture is made for.
    examples: what is asked; pixels of images become what the architecture wants.
    """

    architecture: str
    weights: str = "random"
    seed: int = 0
    input_size: int | None = None
    examples: OwnExamples = OwnExamples()
