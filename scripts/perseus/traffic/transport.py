"""Define the interface of transports, which send requests over gRPC or HTTP."""

from __future__ import annotations

from typing import Protocol, Self

from perseus.models.tensors import Tensor
from perseus.traffic.requests import Status


class Answered(Protocol):
    """Function that a transport calls when a request ends."""

    def __call__(self, done_ns: int, status: Status, message: str, sent_ns: int = 0, /) -> None:
        """Record the time of the end in ns of the monotonic clock, the outcome of the request, and
        the error message or an empty text.

        The outcome of a cancelled request is PENDING. `sent_ns` is the send time of a request that
        did not leave during the call of `Transport.send`, and otherwise 0.
        """


class RequestFailedError(RuntimeError):
    """The server responded to a request with an error, too late, or not at all."""


class Transport(Protocol):
    """An open connection to a server. The transport serialises all requests before the connection
    opens."""

    most_in_flight: int
    """Largest number of requests in flight."""

    @property
    def in_flight(self) -> int:
        """Return the number of requests in flight."""

    def send(self, number: int, answered: Answered) -> None:
        """Send request `number`, and do not wait for its response.

        No other request in flight may have the same `number`. The transport calls `answered`
        exactly once, in a thread of the transport or in the thread that cancels the request. The
        function `answered` may send further requests.
        """

    def cancel(self) -> None:
        """Cancel all requests in flight, and wait until their callbacks have run."""

    def infer(self, number: int, timeout_s: float) -> dict[str, Tensor]:
        """Send one request, wait for its response, and return the outputs by name. Raises
        RequestFailedError."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
