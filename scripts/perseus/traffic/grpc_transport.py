"""Requests over gRPC. Bytes go in and come out: protobuf is left out of every request.

grpcio's own threads write and read, and its callbacks come from one thread of it. Of what grpcio
offers this costs the least CPU time while sends stay punctual: asyncio's sends are late by up to a
millisecond, blocking calls need a thread for each request in flight.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Self

import grpc
import numpy as np
from google.protobuf.message import DecodeError
from tritonclient.grpc import service_pb2

from perseus.models.tensors import DTYPES, Tensor
from perseus.traffic.requests import Status
from perseus.traffic.route import OUTPUT, Inputs, Route, SharedSlice
from perseus.traffic.transport import Answered, RequestFailedError

METHOD = "/inference.GRPCInferenceService/ModelInfer"
_STATUS = {
    grpc.StatusCode.OK: Status.OK,
    grpc.StatusCode.DEADLINE_EXCEEDED: Status.TIMEOUT,
    grpc.StatusCode.UNAVAILABLE: Status.REFUSED,
}


class GrpcTransport:
    """A `transport.Transport` over one gRPC channel."""

    most_in_flight = 4096

    def __init__(self, route: Route) -> None:
        self._requests = [serialise(route.model, each, route.outputs) for each in route.inputs]
        self._timeout_s = route.timeout_s
        self._calls: dict[int, grpc.Future] = {}
        self._access = route.access
        self._metadata = tuple(route.access.values().items())
        self._channel = route.access.channel(route.address)
        self._infer = self._channel.unary_unary(METHOD)

    def __enter__(self) -> Self:
        try:
            grpc.channel_ready_future(self._channel).result(timeout=5)
        except grpc.FutureTimeoutError as error:
            self._channel.close()
            raise RequestFailedError("no gRPC connection within 5 s") from error
        return self

    def __exit__(self, *exc: object) -> None:
        self._channel.close()

    @property
    def in_flight(self) -> int:
        return len(self._calls)

    def send(self, number: int, answered: Answered) -> None:
        call = self._infer.future(
            self._request(number), timeout=self._timeout_s, metadata=self._metadata
        )
        self._calls[number] = call
        call.add_done_callback(partial(self._done, number, answered))

    def _done(self, number: int, answered: Answered, call: grpc.Future) -> None:
        done_ns = time.monotonic_ns()
        if call.cancelled():
            answered(done_ns, Status.PENDING, "")
        elif (code := call.code()) is grpc.StatusCode.OK:
            answered(done_ns, Status.OK, "")
        else:
            message = self._access.hide(f"{code.name}: {call.details()}")
            answered(done_ns, _STATUS.get(code, Status.ERROR), message)
        # Last: whoever waits for nothing in flight has then seen all of it.
        del self._calls[number]

    def cancel(self) -> None:
        # Again and again: a callback may have been about to send.
        while calls := list(self._calls.values()):
            for call in calls:
                call.cancel()
            time.sleep(0.001)

    def infer(self, number: int, timeout_s: float) -> dict[str, Tensor]:
        try:
            answer = self._infer(self._request(number), timeout=timeout_s, metadata=self._metadata)
        except grpc.RpcError as error:
            message = self._access.hide(f"{error.code().name}: {error.details()}")
            raise RequestFailedError(message) from None
        return decode(answer)

    def _request(self, number: int) -> bytes:
        return self._requests[number % len(self._requests)]


def serialise(model: str, inputs: Inputs, outputs: Sequence[str] = (OUTPUT,)) -> bytes:
    """A ModelInferRequest."""
    request = service_pb2.ModelInferRequest(model_name=model)
    for each in inputs:
        described = request.inputs.add(name=each.name, datatype=each.datatype, shape=each.shape)
        if isinstance(each.data, SharedSlice):
            described.parameters["shared_memory_region"].string_param = each.data.region
            described.parameters["shared_memory_offset"].int64_param = each.data.offset_bytes
            described.parameters["shared_memory_byte_size"].int64_param = each.data.size_bytes
        else:
            request.raw_input_contents.append(each.data)
    for name in outputs:
        request.outputs.add(name=name)
    return request.SerializeToString()


def decode(answer: bytes) -> dict[str, Tensor]:
    """The outputs of a ModelInferResponse. Raises RequestFailedError when it has none."""
    try:
        response = service_pb2.ModelInferResponse.FromString(answer)
        pairs = list(zip(response.outputs, response.raw_output_contents, strict=True))
        if not pairs:
            raise ValueError("it has no outputs")
        return {
            each.name: np.frombuffer(data, DTYPES[each.datatype]).reshape(each.shape)
            for each, data in pairs
        }
    except (DecodeError, LookupError, ValueError) as error:
        raise RequestFailedError(f"the answer is not one of a model: {error}") from error
