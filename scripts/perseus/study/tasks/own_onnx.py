"""Define the task of the job that checks and converts an ONNX file of the user."""

from __future__ import annotations

from pydantic import Field

from perseus.study.base import Part
from perseus.study.tasks.own_examples import OwnExamples


class OwnOnnxTask(Part):
    """Settings of the job for a user's ONNX file. The path of the file is an input of the job.

    `seed` is the seed of random examples. `shape` contains, for each input with variable sizes,
    either these sizes or all sizes of the input. `input_size` is one number for all variable sizes,
    or None. `examples` defines the content of the requests. If `deterministic` is true, the model
    must always give the same response to the same request.
    """

    seed: int = 0
    shape: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    input_size: int | None = None
    examples: OwnExamples = OwnExamples()
    deterministic: bool = True
