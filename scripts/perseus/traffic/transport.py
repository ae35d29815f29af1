"""The interface of transports, over gRPC or HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self

from perseus.models.tensors import Tensor
from perseus.traffic.requests import Status

Answered = Callable[[int, Status, str], None]
"""Takes the time of the response in ns of the monotonic clock, the outcome of the request, and
the error's message; PENDING stands for a cancelled request."""


class RequestFailedError(RuntimeError):
    """The response to a request is an error, or is late."""


class Transport(Protocol):
    """An open connection; all requests are serialised in advance."""

    most_in_flight: int
    """Largest number of simultaneous requests."""

    @property
    def in_flight(self) -> int:
        """Number of requests in flight."""

    def send(self, number: int, answered: Answered) -> None:
        """Send request `number` (unique among those in flight) without waiting for its response.

        `answered` is called exactly once, in a thread of the transport or in the thread that
        cancels. It may send.
        """

    def cancel(self) -> None:
        """Cancel all requests in flight, and wait until their callbacks have run."""

    def infer(self, number: int, timeout_s: float) -> dict[str, Tensor]:
        """Wait for one request, and return its outputs by name. Raises RequestFailedError."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
