"""Triton backend in Python that sleeps for a known service time, and sometimes stalls.

Parameters: `service_ms` is the service time. Every `stall_every`-th request takes `stall_ms`
longer; if `stall_every` is 0, no request stalls.
"""

import json
import time
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils
from perseus_tensors import tensor


class TritonPythonModel:
    """A model that serves one request at a time."""

    def initialize(self, args: dict[str, str]) -> None:
        config = json.loads(args["model_config"])
        values = {name: float(p["string_value"]) for name, p in config["parameters"].items()}
        self.service_s = values["service_ms"] / 1000
        self.stall_s = values["stall_ms"] / 1000
        self.stall_every = int(values["stall_every"])
        self.served = 0
        self.name = config["output"][0]["name"]
        self.answer = np.zeros((1, 1), np.float32)

    def execute(self, requests: list[Any]) -> list[Any]:
        return [self.serve() for _ in requests]

    def serve(self) -> Any:
        end_s = time.monotonic() + self.service_s
        self.served += 1
        if self.stall_every and self.served % self.stall_every == 0:
            end_s += self.stall_s
        while (left_s := end_s - time.monotonic()) > 0:
            time.sleep(left_s)
        return pb_utils.InferenceResponse([tensor(self.name, self.answer)])
