"""The way a request takes, gRPC or HTTP: what both offer to those who send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self

from perseus.models.tensors import Tensor
from perseus.traffic.requests import Status

Answered = Callable[[int, Status, str], None]
"""Takes the time of the answer in ns of the monotonic clock, what became of the request, and the
error's message; PENDING stands for a request that was cancelled."""


class RequestFailedError(RuntimeError):
    """A request was answered with an error, or not in time."""


class Transport(Protocol):
    """A connection that is ready; every request was serialised when it was opened."""

    most_in_flight: int
    """Requests that it can carry at a time."""

    @property
    def in_flight(self) -> int:
        """Requests sent that have not been called back."""

    def send(self, number: int, answered: Answered) -> None:
        """Send request `number` (unique among those in flight) without waiting for its answer.

        `answered` is called exactly once, in a thread of the transport or in that of who cancels;
        it may send.
        """

    def cancel(self) -> None:
        """Cancel what is in flight, and wait until all of it has been called back."""

    def infer(self, number: int, timeout_s: float) -> dict[str, Tensor]:
        """The outputs of one request by name, waited for. Raises RequestFailedError."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
