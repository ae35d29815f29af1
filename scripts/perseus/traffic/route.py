"""Define the route of a tenant's requests: their inputs, and the protocol and address over which
they reach the server. Also place inputs into memory that the client and the server share."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import tritonclient.grpc as triton
from numpy.typing import NDArray
from tritonclient.utils import InferenceServerException

from perseus.host.orphans import SHM, unique_name
from perseus.models.tensors import DATATYPES, Tensor
from perseus.serving.access import PLAIN, Access
from perseus.serving.running_server import BINARY, RunningServer

if TYPE_CHECKING:  # senders import this module, but no definition of a study
    from perseus.study.tasks.measure import MeasuredClient

Images = NDArray[np.float32]  # (images, 3, height, width)
Batch = Images | Mapping[str, Tensor]
"""The inputs of a request: a dictionary of tensors by name. For a model whose only input has the
name `input` (INPUT), an array of images is also possible."""

INPUT, OUTPUT = "input", "output"
"""Usual names of the input tensor and of the output tensor of models that Perseus deploys."""

REGISTER_S = 5.0
UNREGISTER_S = 1.0
MAX_INPUTS = 8


class RouteError(RuntimeError):
    """The inputs do not fit into shared memory, or the server does not accept the shared memory."""


@dataclass(frozen=True)
class SharedSlice:
    """The place of an input in a shared-memory region. The server knows the region by its name
    `region`."""

    region: str
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class Input:
    """An input tensor of a request: its bytes, or its place in shared memory.

    `datatype` is Triton's name of the data type.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    data: bytes | SharedSlice

    @property
    def size_bytes(self) -> int:
        """Return the number of bytes of this input that the client sends with each request; 0 for
        an input in shared memory."""
        return len(self.data) if isinstance(self.data, bytes) else 0


Inputs = tuple[Input, ...]
"""The input tensors of one request."""


@dataclass(frozen=True)
class Route:
    """The requests of a model, and the protocol and address over which they reach the server.

    The requests use the entries of `inputs` in turn: request i has the inputs inputs[i %
    len(inputs)]. Each request asks for the output tensors `outputs`. `address` is the server's
    address for the `protocol`, "grpc" or "http". A request without a response after `timeout_s`
    seconds has timed out. `has_binary` says whether the server accepts binary tensors over HTTP.
    """

    protocol: str
    address: str
    model: str
    inputs: tuple[Inputs, ...]
    timeout_s: float
    access: Access = PLAIN
    outputs: tuple[str, ...] = (OUTPUT,)
    has_binary: bool = True


def inline(batches: Sequence[Batch]) -> tuple[Inputs, ...]:
    """Return inputs whose bytes the client sends with each request, one entry per batch."""
    return tuple(map(_inputs, batches))


def _inputs(batch: Batch) -> Inputs:
    named = batch if isinstance(batch, Mapping) else {INPUT: np.asarray(batch, np.float32)}
    return tuple(
        Input(name, DATATYPES[tensor.dtype], tensor.shape, tensor.tobytes())
        for name, tensor in named.items()
    )


def request_images(images: int, batch_size: int) -> list[list[int]]:
    """Return, for each different request, the indices of its images.

    The client sends at most MAX_INPUTS different requests in turn. Each request contains
    `batch_size` consecutive images of a set of `images` images. After the last image of the set,
    the first image follows. If the set has fewer images than `batch_size`, a request contains some
    images several times.
    """
    inputs = min(MAX_INPUTS, images // math.gcd(images, batch_size))
    return [[(i * batch_size + j) % images for j in range(batch_size)] for i in range(inputs)]


@contextmanager
def route_to(
    server: RunningServer,
    client: MeasuredClient,
    model: str,
    batches: Sequence[Batch],
    timeout_s: float,
    outputs: Sequence[str] = (OUTPUT,),
) -> Iterator[Route]:
    """Yield the route for requests to `model` on `server`, over the client's protocol. Each entry
    of `batches` contains the inputs of one request. Raises RouteError (see `shared`)."""
    address = {"grpc": server.grpc_address, "http": server.http_address}[client.protocol]
    with ExitStack() as stack:
        if client.shared_memory:
            inputs = stack.enter_context(shared(batches, server.grpc_address))
        else:
            inputs = inline(batches)
        yield Route(
            client.protocol,
            address,
            model,
            inputs,
            timeout_s,
            server.access,
            tuple(outputs),
            has_binary=BINARY in server.extensions,
        )


@contextmanager
def shared(batches: Sequence[Batch], grpc_address: str) -> Iterator[tuple[Inputs, ...]]:
    """Copy the inputs in `batches` into one region of system shared memory. Yield the inputs with
    their places in the region. All requests in flight read the same region.

    The name of the region identifies this process. If this process is killed before the server has
    mapped the region, Perseus later recognises the name and removes the region (`orphans`). Raises
    RouteError if /dev/shm is too small, or if the server does not accept the region.
    """
    region = f"{unique_name()}-input"
    path = SHM / region
    with PLAIN.grpc_client(grpc_address) as server:
        try:
            inputs = _lay_out(batches, path)
            _register(server, path)
            path.unlink()  # the server has mapped the region, so no file remains after a crash
            yield inputs
        finally:
            _unregister(server, region)
            path.unlink(missing_ok=True)


def _register(server: triton.InferenceServerClient, path: Path) -> None:
    size_bytes = path.stat().st_size
    try:
        server.register_system_shared_memory(
            path.name, f"/{path.name}", size_bytes, client_timeout=REGISTER_S
        )
    except InferenceServerException as error:
        raise RouteError(f"the server does not accept inputs in shared memory: {error}") from error


def _unregister(server: triton.InferenceServerClient, region: str) -> None:
    """Ask the server to release a shared-memory region.

    Triton may refuse to release the region while a request still reads it. The function asks again
    until Triton has released the region, for at most UNREGISTER_S seconds.
    """
    deadline_s = time.monotonic() + UNREGISTER_S
    with contextlib.suppress(InferenceServerException):  # the server may have ended before
        while region in server.get_system_shared_memory_status(client_timeout=REGISTER_S).regions:
            with contextlib.suppress(InferenceServerException):
                server.unregister_system_shared_memory(region, client_timeout=REGISTER_S)
            if time.monotonic() > deadline_s:
                return
            time.sleep(0.01)


def _lay_out(batches: Sequence[Batch], path: Path) -> tuple[Inputs, ...]:
    try:
        path.touch(mode=0o600, exist_ok=False)
        with path.open("wb") as file:
            return tuple(
                tuple(_written(each, path.name, file) for each in _inputs(batch))
                for batch in batches
            )
    except OSError as error:
        raise RouteError(f"the inputs do not fit into {SHM}: {error}") from error


def _written(of: Input, region: str, file: BinaryIO) -> Input:
    """Write an input to the region's file, and return the input with its place in the region."""
    assert isinstance(of.data, bytes)
    place = SharedSlice(region, file.tell(), len(of.data))
    file.write(of.data)
    return replace(of, data=place)
