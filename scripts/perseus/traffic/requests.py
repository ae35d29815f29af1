"""Define the data of the requests of a window: their intended and actual send times, the times at
which they ended, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

MS = 1e6  # nanoseconds in a millisecond


class Status(IntEnum):
    """The outcome of a request.

    PENDING: the request has not ended, or the client cancelled it. REFUSED: the server is too busy
    or unavailable, or the connection is lost. ERROR: the request failed in another way. UNSENT: the
    client dropped the request, because too many requests were in flight.
    """

    PENDING = 0
    OK = 1
    TIMEOUT = 2
    REFUSED = 3
    ERROR = 4
    UNSENT = 5


@dataclass(frozen=True)
class Requests:
    """The requests of one tenant in one window, in the order of their intended send times.

    Times are in nanoseconds of a monotonic clock, shape (n,). `sent_ns` is 0 for a request that the
    client has not sent. `done_ns` is the time of the response, of the timeout or of the error, and
    0 for a request that is pending, cancelled or not sent.
    """

    intended_ns: NDArray[np.int64]
    sent_ns: NDArray[np.int64]
    done_ns: NDArray[np.int64]
    status: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.intended_ns)

    def between(self, start_ns: int, end_ns: int) -> Requests:
        """Return the requests with an intended send time in [start_ns, end_ns)."""
        low, high = np.searchsorted(self.intended_ns, [start_ns, end_ns])
        part = slice(int(low), int(high))
        return Requests(
            self.intended_ns[part], self.sent_ns[part], self.done_ns[part], self.status[part]
        )

    def count(self, status: Status) -> int:
        return int(np.sum(self.status == status))

    @property
    def answered(self) -> NDArray[np.bool_]:
        return self.status == Status.OK

    def latency_ms(self, now_ns: int) -> NDArray[np.float64]:
        """Return the latency of each request: the time from its *intended* send time to its
        response (docs/explanation/load.md).

        The latency of a pending request is its age at `now_ns`. The latency of a request that timed
        out, was refused, failed or was not sent is infinite.
        """
        done = np.where(self.status == Status.PENDING, now_ns, self.done_ns)
        latency = (done - self.intended_ns) / MS
        return np.where(self.status > Status.OK, np.inf, latency)

    def send_lag_ms(self, now_ns: int) -> NDArray[np.float64]:
        """Return the send lag of each request in ms. If the client has not sent a request yet, its
        send lag is its age at `now_ns`.

        The result has no entries for requests that the client dropped because too many requests
        were in flight (UNSENT).
        """
        due = self.status != Status.UNSENT
        sent = np.where(self.sent_ns > 0, self.sent_ns, now_ns)
        return (sent - self.intended_ns)[due] / MS
