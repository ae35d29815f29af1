"""Define the task: check and convert the ONNX file of a user."""

from __future__ import annotations

from pydantic import Field

from perseus.study.base import Part
from perseus.study.tasks.own_examples import OwnExamples


class OwnOnnxTask(Part):
    """Settings for the ONNX file of a user. The ONNX file is an input file of the job.

    `seed` is the seed of random examples. `shape` has, for each input, its variable sizes or all
    its sizes. `input_size` is one number for all variable sizes, or None. `examples` defines the
    content of the requests. `deterministic` is true if the model must give the same responses to
    the same request.
    """

    seed: int = 0
    shape: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    input_size: int | None = None
    examples: OwnExamples = OwnExamples()
    deterministic: bool = True
