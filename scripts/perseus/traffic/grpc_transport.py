"""Send requests over gRPC. The transport serialises all different requests in advance, so a send
needs no time for protobuf.

The transport uses the HTTP/2 client of Perseus (`http2_client`) instead of grpcio. The library
grpcio used about twice as much CPU time, and its threads delayed sends
(docs/evidence/benchmarks.md, "The client"). For the protocol, see
https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Self
from urllib.parse import unquote

import numpy as np
from google.protobuf.message import DecodeError
from grpc import StatusCode
from tritonclient.grpc import service_pb2

from perseus.models.tensors import DTYPES, Tensor
from perseus.study.protocols import MAX_IN_FLIGHT
from perseus.traffic.http2 import REFUSED_STREAM, Http2Error, header_block
from perseus.traffic.http2_client import CONNECT_S, Call, End, Http2Client
from perseus.traffic.requests import Status
from perseus.traffic.route import OUTPUT, Inputs, Route, SharedSlice
from perseus.traffic.transport import Answered, RequestFailedError

METHOD: Final = "/inference.GRPCInferenceService/ModelInfer"
OK: Final = str(StatusCode.OK.value[0])
PREFIX_BYTES: Final = 5  # a flag for compression and the length of the message precede a message
_CODES: Final = {str(code.value[0]): code for code in StatusCode}
_CODES_OF_HTTP: Final = dict.fromkeys(("429", "502", "503", "504"), StatusCode.UNAVAILABLE)
_STATUS: Final = {
    StatusCode.OK: Status.OK,
    StatusCode.DEADLINE_EXCEEDED: Status.TIMEOUT,
    StatusCode.UNAVAILABLE: Status.REFUSED,
}
_ENDS: Final = {
    End.CANCELLED: StatusCode.CANCELLED,
    End.LATE: StatusCode.DEADLINE_EXCEEDED,
    End.LOST: StatusCode.UNAVAILABLE,
}
_CONTENTS: Final = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
}
"""For each data type, the field of the message `InferTensorContents` that contains its values. A
server sends outputs either in these fields or as bytes in `raw_output_contents`. The protocol has
no field for FP16."""


class GrpcTransport:
    """A `transport.Transport` that sends all requests over one HTTP/2 connection."""

    most_in_flight = MAX_IN_FLIGHT["grpc"]

    def __init__(self, route: Route) -> None:
        messages = (serialise(route.model, each, route.outputs) for each in route.inputs)
        self._bodies = [memoryview(b"\0" + len(m).to_bytes(4, "big") + m) for m in messages]
        self._timeout_s = route.timeout_s
        self._access = route.access
        self._head = header_block(
            [
                (":method", "POST"),
                (":scheme", route.access.scheme),
                (":path", METHOD),
                (":authority", route.address),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                *((name.lower(), value) for name, value in route.access.values().items()),
            ]
        )
        self._calls: dict[int, Call] = {}
        self._client = Http2Client(route.address, route.access.ssl_context("h2"))

    def __enter__(self) -> Self:
        end_s = time.monotonic() + CONNECT_S
        while True:
            try:
                self._client.__enter__()
                return self
            except (OSError, Http2Error) as error:
                if time.monotonic() > end_s:
                    message = self._access.hide(f"no gRPC connection within 5 s: {error}")
                    raise RequestFailedError(message) from None
                time.sleep(0.05)

    def __exit__(self, *exc: object) -> None:
        self._client.__exit__()

    @property
    def in_flight(self) -> int:
        return len(self._calls)

    def send(self, number: int, answered: Answered) -> None:
        call = self._call(number, self._timeout_s)
        call.ended = partial(self._done, number, answered)
        self._calls[number] = call
        self._client.send(call)

    def _call(self, number: int, timeout_s: float) -> Call:
        body = self._bodies[number % len(self._bodies)]
        return Call(self._head, body, deadline_s=time.monotonic() + timeout_s)

    def _done(
        self, number: int, answered: Answered, call: Call, done_ns: int, how: End, why: str
    ) -> None:
        code, message = outcome(call, how, why)
        try:
            if code is StatusCode.OK:
                answered(done_ns, Status.OK, "")
            elif how is End.CANCELLED:
                answered(done_ns, Status.PENDING, "")
            else:
                error_text = self._access.hide(f"{code.name}: {message}")
                answered(done_ns, _STATUS.get(code, Status.ERROR), error_text)
        finally:  # delete last: when `in_flight` is 0, readers must see all results
            del self._calls[number]

    def cancel(self) -> None:
        # Repeat the loop, since a callback may send a new request meanwhile.
        while calls := list(self._calls.values()):
            for call in calls:
                self._client.cancel(call)
            time.sleep(0.001)

    def infer(self, number: int, timeout_s: float) -> dict[str, Tensor]:
        call, is_over = self._call(number, timeout_s), threading.Event()
        outcomes: list[tuple[StatusCode, str]] = []

        def ended(call: Call, done_ns: int, how: End, why: str) -> None:
            outcomes.append(outcome(call, how, why))
            is_over.set()

        call.ended = ended
        self._client.send(call)
        is_over.wait()
        ((code, message),) = outcomes
        if code is not StatusCode.OK:
            raise RequestFailedError(self._access.hide(f"{code.name}: {message}"))
        return decode(b"".join(call.parts)[PREFIX_BYTES:])


TRANSPORT: Final = GrpcTransport


def outcome(call: Call, how: End, why: str) -> tuple[StatusCode, str]:
    """Return the gRPC status of an ended call, and its error message.

    `how` says how the HTTP/2 request ended. `why` is the reason if the server did not respond.
    """
    if how is not End.ANSWERED:
        return _ENDS[how], why
    if call.reset_code is not None:
        is_refused = call.reset_code == REFUSED_STREAM
        code = StatusCode.UNAVAILABLE if is_refused else StatusCode.INTERNAL
        return code, f"the server reset the stream (code {call.reset_code})"
    grpc_status = call.fields.get("grpc-status")
    # Check for success first, because most calls succeed.
    if grpc_status == OK and _is_message(b"".join(call.parts)):
        return StatusCode.OK, ""
    if grpc_status is None:
        status = call.fields.get(":status", "")
        return _CODES_OF_HTTP.get(
            status, StatusCode.UNKNOWN
        ), f"the server responded with HTTP {status} instead of gRPC"
    code = _CODES.get(grpc_status, StatusCode.UNKNOWN)
    if code is StatusCode.OK:
        return StatusCode.INTERNAL, "the response is not one complete message"
    message = unquote(call.fields.get("grpc-message", ""))
    return code, too_large(message) if code is StatusCode.RESOURCE_EXHAUSTED else message


def too_large(message: str) -> str:
    """Return a clearer message if the server's `message` says that a request is too large;
    otherwise return `message`. The clearer message states the limit and advises what to do."""
    if sizes := re.search(r"larger than max \((\d+) vs\.? (\d+)\)", message):
        has, most = map(int, sizes.groups())
        return (
            f"a request has {has:,} bytes, and the server accepts at most {most:,} bytes (lower"
            " request_batch_size, or raise the server's size limit of gRPC messages)"
        )
    return message


def _is_message(body: bytes) -> bool:
    """Return whether the body of a response contains exactly one uncompressed message."""
    length = len(body) - PREFIX_BYTES
    return length >= 0 and body[:PREFIX_BYTES] == b"\0" + length.to_bytes(4, "big")


def serialise(model: str, inputs: Inputs, outputs: Sequence[str] = (OUTPUT,)) -> bytes:
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
    """Return the output tensors of a serialised ModelInferResponse by name.

    Raises RequestFailedError if the bytes are not a ModelInferResponse, if the response has no
    outputs, or if an output contradicts its shape or its data type.
    """
    try:
        response = service_pb2.ModelInferResponse.FromString(answer)
        if not response.outputs:
            raise ValueError("the response has no outputs")
        raw = response.raw_output_contents or [None] * len(response.outputs)
        return {
            each.name: _values(each, data).reshape(each.shape)
            for each, data in zip(response.outputs, raw, strict=True)
        }
    except (DecodeError, LookupError, ValueError, OverflowError) as error:
        raise RequestFailedError(f"the response does not come from a model: {error}") from error


def _values(output: Any, data: bytes | None) -> Tensor:
    """Return the values of an output tensor, shape (n,).

    `data` contains the values as bytes. If `data` is None, the values are in a field of `output`.
    Raises LookupError for an unknown data type, and ValueError or OverflowError for values that are
    impossible in the data type.
    """
    dtype = DTYPES[output.datatype]
    if data is None:
        return np.fromiter(getattr(output.contents, _CONTENTS[output.datatype]), dtype)
    return np.frombuffer(data, dtype)
