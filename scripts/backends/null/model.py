"""Triton backend in Python that immediately responds with zeros.

With this backend, Perseus measures the largest rate that the client and the transport can reach.
"""

import json
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from perseus_tensors import tensor


class TritonPythonModel:
    """A model that ignores the values of its input and responds with zeros.

    If the model supports batches, the response has one row of zeros for each row of the request.
    """

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        (answer,) = config["output"]
        self.input, self.output = config["input"][0]["name"], answer["name"]
        self.has_batches = config["max_batch_size"] > 0
        rows = config["max_batch_size"] if self.has_batches else 1
        self.zeros = np.zeros((rows, *map(int, answer["dims"])), np.float32)

    def execute(self, requests: list[Any]) -> list[Any]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        shape = pb_utils.get_input_tensor_by_name(request, self.input).shape()
        answer = self.zeros[: shape[0]] if self.has_batches else self.zeros[0]
        return pb_utils.InferenceResponse([tensor(self.output, answer)])
