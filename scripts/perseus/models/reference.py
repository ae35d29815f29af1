"""Read and write reference.npz: examples for a model, and the model's response to each example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from perseus.models.answers import relative_error, scale_of
from perseus.models.detections import detections_error
from perseus.models.tensors import Tensor
from perseus.study.model import Precision

Answers = Sequence[Mapping[str, Tensor]]
"""The responses of a model, one per example. Each response contains the outputs by name."""


@dataclass(frozen=True)
class Reference:
    """Examples (contents of requests), and the response of a model to each single example.

    `inputs` has n examples of each input by name, shape (n, *dims). `has_batches` is true if the
    model supports batches. In this case, the responses in `answers` have no batch dimension. If
    `has_batches` is false, the shape may differ between the responses to different examples.
    `precision` is the numeric precision in which the model computes. If `is_deterministic` is
    false, two responses to the same example may differ. For a detection network, `sorted_by` is the
    name of the output with the scores. For any other network, `sorted_by` is empty.
    """

    inputs: Mapping[str, Tensor]
    answers: Answers
    has_batches: bool = True
    precision: Precision = "fp32"
    is_deterministic: bool = True
    sorted_by: str = ""

    @property
    def count(self) -> int:
        """Number of examples."""
        return len(self.answers)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.answers[0])

    def given(self, examples: Sequence[int]) -> dict[str, Tensor]:
        """Return the inputs of a request. The request contains the examples with these indices.

        If the model does not support batches, the request contains only the first of the examples.
        """
        rows = list(examples) if self.has_batches else examples[0]
        return {name: np.asarray(values[rows]) for name, values in self.inputs.items()}

    def expected(self, examples: Sequence[int]) -> dict[str, Tensor]:
        """Return the expected response to the request `given(examples)`."""
        if not self.has_batches:
            return dict(self.answers[examples[0]])
        return {name: np.stack([self.answers[i][name] for i in examples]) for name in self.outputs}

    def all_answers(self, output: str) -> list[Tensor]:
        return [answer[output] for answer in self.answers]

    def scales(self, tolerance: float) -> dict[str, float]:
        """Return the divisor for the relative errors of each output, by name (see `scale_of`)."""
        return {name: scale_of(self.all_answers(name), tolerance) for name in self.outputs}

    def error(
        self, examples: Sequence[int], answer: Mapping[str, Tensor], scales: Mapping[str, float]
    ) -> float:
        """Return the largest relative error of the response `answer` to `given(examples)`.

        `scales` is the result of the method `scales`. The error is infinite if an output is missing
        or has a wrong shape. If `is_deterministic` is false, the error is 0 unless an output is
        missing.
        """
        expected = self.expected(examples)
        if not self.is_deterministic:
            return 0.0 if expected.keys() <= answer.keys() else float("inf")
        if self.sorted_by:
            return detections_error(answer, expected, scales, self.sorted_by)
        return max(_error(answer.get(name), of, scales[name]) for name, of in expected.items())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that reference.npz contains."""
        answers = {
            f"answer/{i}/{name}": tensor
            for i, answer in enumerate(self.answers)
            for name, tensor in answer.items()
        }
        inputs = {f"input/{name}": values for name, values in self.inputs.items()}
        told = {
            "has_batches": np.array(self.has_batches),
            "precision": np.array(self.precision),
            "is_deterministic": np.array(self.is_deterministic),
            "sorted_by": np.array(self.sorted_by),
        }
        return {**inputs, **answers, **told}

    def write(self, path: Path) -> None:
        with path.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **self.arrays())

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Reference:
        """Return the reference from the arrays of reference.npz."""
        named = [name.split("/", 2) for name in arrays if name.startswith("answer/")]
        answers: list[dict[str, Tensor]] = [{} for _ in {number for _, number, _ in named}]
        for _, number, name in named:
            answers[int(number)][name] = arrays[f"answer/{number}/{name}"]
        return cls(
            inputs={
                name.removeprefix("input/"): arrays[name]
                for name in arrays
                if name.startswith("input/")
            },
            answers=answers,
            has_batches=bool(arrays["has_batches"]),
            precision=cast(Precision, str(arrays["precision"])),
            is_deterministic=bool(arrays["is_deterministic"]),
            sorted_by=str(arrays.get("sorted_by", "")),
        )

    @classmethod
    def read(cls, path: Path) -> Reference:
        with np.load(path) as arrays:
            return cls.of(arrays)

    @classmethod
    def of_classifier(cls, images: Tensor, scores: Tensor) -> Reference:
        """Return the reference of a classification model.

        `images` has the shape (n, 3, height, width), and `scores` the shape (n, classes).
        """
        return cls({"input": images}, [{"output": row} for row in scores])


def _error(answer: Tensor | None, expected: Tensor, scale: float) -> float:
    if answer is None:
        return float("inf")
    # If the only dimension of an output is the batch, Triton adds a second dimension of size 1.
    is_padded = answer.shape == (*expected.shape, 1)
    return relative_error(answer.reshape(expected.shape) if is_padded else answer, expected, scale)
