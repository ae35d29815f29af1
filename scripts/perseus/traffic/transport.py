"""Define the interface of a transport: an object that sends requests over gRPC or HTTP."""

from __future__ import annotations

from typing import Protocol, Self

from perseus.models.tensors import Tensor
from perseus.traffic.requests import Status


class Answered(Protocol):
    """The callback function of a request, which the transport calls when the request ends."""

    def __call__(self, done_ns: int, status: Status, message: str, sent_ns: int = 0, /) -> None:
        """Record the end of the request: its time in ns of the monotonic clock, the outcome, and
        the error message or an empty text.

        The outcome of a cancelled request is PENDING. If the transport sent the request after
        `Transport.send` had returned, `sent_ns` is the actual send time. Otherwise, `sent_ns` is 0.
        """


class RequestFailedError(RuntimeError):
    """A request failed (error, late response or no response), or the transport cannot connect."""


class Transport(Protocol):
    """A connection to a server; a context manager. The transport serialises all different requests
    before the connection opens, so that sending costs little time."""

    most_in_flight: int
    """Largest number of requests that the transport can have in flight."""

    @property
    def in_flight(self) -> int:
        """Return the number of requests in flight."""

    def send(self, number: int, answered: Answered) -> None:
        """Send request `number`, and do not wait for its response.

        `number` selects the inputs of the request (`Route`). No other request in flight may have
        the same `number`. The transport calls `answered` exactly once, in its own thread or in the
        thread that cancels the request. The function `answered` may send other requests.
        """

    def cancel(self) -> None:
        """Cancel all requests in flight, and wait until their callbacks have run."""

    def infer(self, number: int, timeout_s: float) -> dict[str, Tensor]:
        """Send one request, wait for its response, and return the output tensors by name.

        Raises RequestFailedError if the request fails, or if its response does not arrive within
        `timeout_s` seconds.
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
