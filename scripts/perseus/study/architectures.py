"""Read properties of torchvision's classification networks from the file `architectures.csv`: input
size, number of operations and parameters, and accuracy on ImageNet.

`make architectures` writes this file from the metadata of torchvision. Because of the file,
`snakemake -n` needs neither torch nor internet access.
"""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_suffix(".csv")

TIMM_MISSING: Final = (
    "{!r} needs timm, which is not installed (.venv/bin/python -m pip install -r envs/timm.txt)"
)
"""Message if a model needs the package timm, but timm is not installed."""


@dataclass(frozen=True)
class Weights:
    """Trained weights of one architecture.

    `name` is the name of the weights, such as "IMAGENET1K_V1". `input_px` is the size of the images
    with which torchvision evaluated the weights: their height and width in pixels. `gflops` is the
    number of multiply-add operations for one such image, in billions. `top1` is the accuracy on
    ImageNet-1K in percent, with one crop of each image. `recipe` is the URL of the training recipe,
    without `https://github.com/`.
    """

    architecture: str
    name: str
    is_default: bool
    input_px: int
    gflops: float
    parameters: int
    top1: float
    recipe: str


@functools.cache
def all_weights() -> tuple[Weights, ...]:
    """Return all trained weights of torchvision, in the order of `architectures.csv`."""
    with FILE.open(newline="", encoding="utf-8") as stream:
        return tuple(
            Weights(
                row["architecture"],
                row["weights"],
                row["default"] == "yes",
                int(row["input_px"]),
                float(row["gflops"]),
                int(row["parameters"]),
                float(row["top1"]),
                row["recipe"],
            )
            for row in csv.DictReader(stream)
        )


@functools.cache
def default_weights() -> dict[str, Weights]:
    """Return the default weights of each architecture. The keys are the names of the architectures,
    in ascending order of their operations per image."""
    defaults = [each for each in all_weights() if each.is_default]
    ordered = sorted(defaults, key=lambda each: (each.gflops, each.architecture))
    return {each.architecture: each for each in ordered}


def best_weights(architecture: str, input_px: int) -> Weights | None:
    """Return the most accurate weights of an architecture for images of `input_px` x `input_px`
    pixels; None if the architecture has no weights for this size."""
    fitting = [
        each
        for each in all_weights()
        if (each.architecture, each.input_px) == (architecture, input_px)
    ]
    return max(fitting, key=lambda each: each.top1, default=None)


def matching(patterns: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the architectures that match at least one pattern, such as "resnet*", in
    ascending order of operations per image. The pattern "all" selects all architectures."""
    wanted = ("*",) if patterns == "all" else (patterns,) if isinstance(patterns, str) else patterns
    return tuple(
        name for name in default_weights() if any(fnmatchcase(name, each) for each in wanted)
    )
