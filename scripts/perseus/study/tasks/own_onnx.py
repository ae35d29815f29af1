"""Define the task: check and convert the ONNX file of a user."""

from __future__ import annotations

from pydantic import Field

from perseus.study.base import Part
from perseus.study.tasks.own_examples import OwnExamples


class OwnOnnxTask(Part):
    """Settings for the file, which is an input of the job.

    seed: of random examples. shape: by input, the sizes that the file leaves open, or all of them.
    input_size: for all sizes that it leaves open, None for none. examples: content of the requests.
    deterministic: whether it must give the same answers again.
    """

    seed: int = 0
    shape: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    input_size: int | None = None
    examples: OwnExamples = OwnExamples()
    deterministic: bool = True
