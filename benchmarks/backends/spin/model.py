"""Triton backend in Python that computes a known number of rounds per request, and is slower while
a second model computes.

Parameters: `rounds` per request; `slower`, the factor on the time of a round while the other model
computes; `busy`, a file with one byte per model, which is 1 while the model computes; `index`, the
position of this model's byte.
"""

import hashlib
import json
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from perseus_tensors import tensor

BLOCK = bytes(2**15)


class TritonPythonModel:
    """A model that serves one request at a time."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        values = {name: p["string_value"] for name, p in config["parameters"].items()}
        self.rounds, self.slower = int(values["rounds"]), float(values["slower"])
        self.index = int(values["index"])
        with Path(values["busy"]).open("r+b") as file:
            self.busy = mmap.mmap(file.fileno(), 2)
        self.name = config["output"][0]["name"]
        self.answer = np.zeros((1, 1), np.float32)

    def execute(self, requests: list[Any]) -> list[Any]:
        return [self.serve() for _ in requests]

    def serve(self) -> Any:
        self.busy[self.index] = 1
        left = float(self.rounds)
        while left > 0.5:  # to the nearest round
            hashlib.sha256(BLOCK).digest()
            left -= 1 / self.slower if self.busy[1 - self.index] else 1
        self.busy[self.index] = 0
        return pb_utils.InferenceResponse([tensor(self.name, self.answer)])
