"""Open-loop gRPC client: one process per tenant, pinned away from the server.

The request is serialised once. `sender` is what runs in the process; it keeps only four arrays per
window, and whoever asks gets a copy of them, in mid-window too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray
from tritonclient.grpc import service_pb2

from perseus.sender import CHANNEL_OPTIONS, METHOD, Result, Snapshot

# Not multiprocessing's own spawn: that would run the caller's main script once more.
SENDER = (
    "import sys; from multiprocessing.connection import Connection; from perseus import sender;"
)
SENDER += "sender.main(Connection(int(sys.argv[1])))"


def serialise(model: str, image: NDArray[np.float32]) -> bytes:
    """A ModelInferRequest for one input of shape (batch, 3, height, width)."""
    request = service_pb2.ModelInferRequest(model_name=model)
    request.inputs.add(name="input", datatype="FP32", shape=image.shape)
    request.outputs.add(name="output")
    request.raw_input_contents.append(np.ascontiguousarray(image, np.float32).tobytes())
    return request.SerializeToString()


def sequential_ms(address: str, payload: bytes, count: int, limit_s: float) -> NDArray[np.float64]:
    """Latencies of up to `count` requests sent one after another: the server without load.

    Raises ClientError when one fails.
    """
    latencies: list[float] = []
    end_s = time.monotonic() + limit_s
    with grpc.insecure_channel(address, CHANNEL_OPTIONS) as channel:
        infer = channel.unary_unary(METHOD)
        while len(latencies) < count and (not latencies or time.monotonic() < end_s):
            start_ns = time.monotonic_ns()
            try:
                infer(payload, timeout=60)
            except grpc.RpcError as error:
                raise ClientError(f"a request without load failed: {error}") from error
            latencies.append((time.monotonic_ns() - start_ns) / 1e6)
    return np.array(latencies)


class ClientError(RuntimeError):
    """A client process ended or does not answer."""


class Client:
    """A tenant's client process; use as a context manager.

    Raises ClientError when the process dies or does not answer within 30 s.
    """

    def __init__(
        self, name: str, address: str, payload: bytes, cores: Sequence[int], timeout_s: float
    ) -> None:
        self.name = name
        self._setup = (address, payload, tuple(cores), timeout_s)

    def __enter__(self) -> Client:
        self._pipe, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", SENDER, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        try:
            self._pipe.send(self._setup)
            self._receive()  # the process is up and its channel is ready
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._pipe.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def start(self, start_ns: int, offsets_s: NDArray[np.float64]) -> None:
        """Begin a window whose requests are to be sent at start_ns + offsets_s."""
        self._send("start", start_ns + np.round(offsets_s * 1e9).astype(np.int64))

    def look(self, until_ns: int) -> Snapshot:
        """The requests intended before `until_ns`, as they are now."""
        self._send("look", until_ns)
        return self._receive()

    def stop(self, patience_s: float, idle_s: float = 20.0) -> None:
        """Send no more, wait up to `patience_s` for answers, cancel what is left, and wait up to
        `idle_s` until the server has worked off its queue. `result` has the outcome."""
        self._send("stop", (patience_s, idle_s))
        self._stop_s = patience_s + idle_s

    def result(self) -> Result:
        """What `stop` ended with."""
        return self._receive(self._stop_s)

    def _send(self, command: str, value: object) -> None:
        try:
            self._pipe.send((command, value))
        except OSError as error:
            raise ClientError(f"the client of {self.name} died") from error

    def _receive(self, more_s: float = 0.0) -> Any:
        try:
            if self._pipe.poll(30 + more_s):
                return self._pipe.recv()
        except (EOFError, OSError) as error:
            raise ClientError(f"the client of {self.name} died") from error
        raise ClientError(f"the client of {self.name} does not answer")
