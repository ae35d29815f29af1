"""Send requests over HTTP in Triton's binary tensor protocol: a JSON header describes the tensors,
and the bytes of the tensors follow the header.

If the server does not support the binary extension, requests and responses contain the tensors as
JSON. An asyncio loop in its own thread sends the requests and reads the responses. The send time of
a request is the time at which the asyncio loop begins to send the request. If the request needs a
new connection, the time to connect is part of the latency, not of the send lag. For the protocol,
see
https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_binary_data.md.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, TypeVar

import aiohttp
import numpy as np

from perseus.models.tensors import DTYPES, Tensor
from perseus.study.protocols import MAX_IN_FLIGHT
from perseus.traffic.requests import Status
from perseus.traffic.route import OUTPUT, Input, Inputs, Route
from perseus.traffic.transport import Answered, RequestFailedError

HEADER_LENGTH = "Inference-Header-Content-Length"
JSON: Final = {"Content-Type": "application/json"}
CONNECT_S = 5.0
NOT_TAKEN: Final = (429, 503)
"""HTTP status codes with which a server refuses a request: too many requests (RFC 6585), and
service unavailable (RFC 9110)."""
T = TypeVar("T")


@dataclass(frozen=True)
class Reply:
    """The response to a request, or the error that ended the request. `json_bytes` is the length of
    the JSON part of `body`."""

    done_ns: int
    status: Status
    message: str = ""
    body: bytes = b""
    json_bytes: int = 0


class HttpTransport:
    """A `transport.Transport` with one HTTP/1.1 connection per request in flight."""

    most_in_flight = MAX_IN_FLIGHT["http"]

    def __init__(self, route: Route) -> None:
        self._access = route.access
        base = f"{route.access.scheme}://{route.address}/v2"
        self._alive = f"{base}/health/live"
        self._url = f"{base}/models/{route.model}/infer"
        write = serialise if route.has_binary else serialise_json
        self._requests = [write(each, route.outputs) for each in route.inputs]
        self._has_binary = route.has_binary
        self._timeout_s = route.timeout_s
        self._tasks: dict[int, asyncio.Task[tuple[int, Reply]] | None] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._wait(self._open())
        except (aiohttp.ClientError, TimeoutError) as error:
            self.__exit__()
            message = self._access.hide(f"no HTTP connection: {error}")
            raise RequestFailedError(message) from None
        return self

    async def _open(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._access.ssl_context() or True),
            headers=self._access.values(),
            # With Accept-Encoding, Triton would compress responses on the server's cores.
            skip_auto_headers=["User-Agent", "Accept", "Accept-Encoding"],
            timeout=aiohttp.ClientTimeout(None),  # aiohttp would round timeouts above 5 s
        )
        # A redirect would send the headers, and thus the tokens, to another server.
        async with (
            asyncio.timeout(CONNECT_S),
            self._session.get(self._alive, allow_redirects=False) as reply,
        ):
            await reply.read()
            if reply.status != 200:
                raise aiohttp.ClientError(
                    f"the server responded with HTTP {reply.status} at {self._alive}"
                )

    def __exit__(self, *exc: object) -> None:
        self._wait(self._session.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def in_flight(self) -> int:
        return len(self._tasks)

    def send(self, number: int, answered: Answered) -> None:
        self._tasks[number] = None
        self._loop.call_soon_threadsafe(self._start, number, answered)

    def _start(self, number: int, answered: Answered) -> None:
        task = self._loop.create_task(self._timed_exchange(number))
        self._tasks[number] = task
        task.add_done_callback(partial(self._done, number, answered))

    async def _timed_exchange(self, number: int) -> tuple[int, Reply]:
        """Send a request. Return its send time in ns of the monotonic clock, and its response."""
        return time.monotonic_ns(), await self._exchange(number, self._timeout_s)

    def _done(self, number: int, answered: Answered, task: asyncio.Task[tuple[int, Reply]]) -> None:
        if task.cancelled():
            answered(time.monotonic_ns(), Status.PENDING, "")
        else:
            sent_ns, reply = task.result()
            answered(reply.done_ns, reply.status, self._access.hide(reply.message), sent_ns)
        # Delete the task last: when `in_flight` is 0, readers must see all results.
        del self._tasks[number]

    def cancel(self) -> None:
        # Repeat the loop, because a request that has not started yet has no task to cancel.
        while tasks := list(self._tasks.values()):
            for task in filter(None, tasks):
                self._loop.call_soon_threadsafe(task.cancel)
            time.sleep(0.001)

    def infer(self, number: int, timeout_s: float) -> dict[str, Tensor]:
        reply = self._wait(self._exchange(number, timeout_s))
        if reply.status is not Status.OK:
            raise RequestFailedError(self._access.hide(reply.message))
        return decode(reply)

    def _wait(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result()

    async def _exchange(self, number: int, timeout_s: float) -> Reply:
        """Send one request, and return its response or its error. Only a cancellation raises an
        exception."""
        body, json_bytes = self._requests[number % len(self._requests)]
        headers = {HEADER_LENGTH: str(json_bytes)} if self._has_binary else JSON
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.post(
                    self._url,
                    data=body,
                    headers=headers,
                    allow_redirects=False,
                ) as answer,
            ):
                return _reply(answer, await answer.read())
        except TimeoutError:
            return Reply(time.monotonic_ns(), Status.TIMEOUT, f"no response after {timeout_s:g} s")
        except aiohttp.ClientConnectionError as error:
            return Reply(time.monotonic_ns(), Status.REFUSED, f"{type(error).__name__}: {error}")
        except Exception as error:  # a request with any error must count as failed
            return Reply(time.monotonic_ns(), Status.ERROR, f"{type(error).__name__}: {error}")


TRANSPORT: Final = HttpTransport


def _reply(answer: aiohttp.ClientResponse, body: bytes) -> Reply:
    done_ns = time.monotonic_ns()
    if answer.status == 200:
        # All other requests wait while this function runs, so only `decode` parses the JSON.
        json_bytes = int(answer.headers.get(HEADER_LENGTH, len(body)))
        if 0 < json_bytes <= len(body) and body.startswith(b"{"):
            return Reply(done_ns, Status.OK, "", body, json_bytes)
    status = Status.REFUSED if answer.status in NOT_TAKEN else Status.ERROR
    text = (
        f"HTTP {answer.status}{', but not the response of a model' if answer.status == 200 else ''}"
    )
    return Reply(done_ns, status, f"{text}: {body[:500].decode(errors='replace')}")


def serialise(inputs: Inputs, outputs: Sequence[str] = (OUTPUT,)) -> tuple[bytes, int]:
    """Return the body of a request with binary tensors, and the length in bytes of its JSON
    part."""
    described = {
        "inputs": [
            {
                "name": each.name,
                "datatype": each.datatype,
                "shape": each.shape,
                "parameters": _place(each),
            }
            for each in inputs
        ],
        "outputs": [{"name": name, "parameters": {"binary_data": True}} for name in outputs],
    }
    head = json.dumps(described).encode()
    parts = [each.data for each in inputs if isinstance(each.data, bytes)]
    return b"".join([head, *parts]), len(head)


def serialise_json(inputs: Inputs, outputs: Sequence[str] = (OUTPUT,)) -> tuple[bytes, int]:
    """Return the body of a request with tensors as JSON, and the length of this body in bytes."""
    described = {
        "inputs": [
            {
                "name": each.name,
                "datatype": each.datatype,
                "shape": each.shape,
                "data": np.frombuffer(each.data, DTYPES[each.datatype]).tolist(),
            }
            for each in inputs
            if isinstance(each.data, bytes)
        ],
        "outputs": [{"name": name} for name in outputs],
    }
    body = json.dumps(described).encode()
    return body, len(body)


def _place(of: Input) -> dict[str, str | int]:
    if isinstance(of.data, bytes):
        return {"binary_data_size": len(of.data)}
    return {
        "shared_memory_region": of.data.region,
        "shared_memory_offset": of.data.offset_bytes,
        "shared_memory_byte_size": of.data.size_bytes,
    }


def decode(reply: Reply) -> dict[str, Tensor]:
    """Return the output tensors of a response by name. Raises RequestFailedError if the response
    has no outputs, or is not the response of a model."""
    try:
        outputs = json.loads(reply.body[: reply.json_bytes])["outputs"]
        return dict(_outputs(outputs, reply.body[reply.json_bytes :]))
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
        raise RequestFailedError(f"the response does not come from a model: {error}") from error


def _outputs(described: Sequence[Any], data: bytes) -> Iterator[tuple[str, Tensor]]:
    """Yield the name and the values of each output tensor.

    `described` contains the JSON descriptions of the outputs. The values of an output are in its
    description or in `data`. Raises ValueError if there are no outputs, or if the sizes of the
    outputs do not add up to the size of `data`.
    """
    at = 0
    for each in described:
        dtype, count = DTYPES[each["datatype"]], math.prod(each["shape"])
        if "data" in each:
            yield each["name"], np.array(each["data"], dtype).reshape(each["shape"])
            continue
        yield each["name"], np.frombuffer(data, dtype, count, at).reshape(each["shape"])
        at += count * dtype.itemsize
    if not described or at != len(data):
        raise ValueError(f"{len(data)} bytes do not match the shapes of {len(described)} outputs")
