"""Send the requests of a window, and record their times and outcomes.

An open loop sends each request at a given time. A closed loop keeps a fixed number of requests in
flight.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Final

import numpy as np
from numpy.typing import NDArray

from perseus.traffic.requests import Requests, Status
from perseus.traffic.transport import Transport

MAX_RPS = 50_000
"""Number of requests per second for which a closed loop reserves memory. No client process can send
so many requests per second."""
DOZE_NS = 50_000_000  # time between two checks whether the window ends
FIRST_BACK_OFF_NS: Final = 10_000_000
LONGEST_BACK_OFF_NS: Final = 1_000_000_000


class LoadLoop:
    """The requests of one window, with their times and outcomes.

    One thread sends the requests. When a request ends, the transport calls a method of the loop.
    Any thread may read the times and outcomes.
    """

    def __init__(self, intended_ns: NDArray[np.int64]) -> None:
        n = len(intended_ns)
        self._intended_ns = intended_ns
        self._sent_ns = np.zeros(n, np.int64)
        self._done_ns = np.zeros(n, np.int64)
        self._status = np.zeros(n, np.uint8)
        self._stopped = threading.Event()
        self._left = threading.Event()
        self.errors: dict[str, str] = {}
        """For each status, the first error message. The keys are the names of the statuses in lower
        case."""

    def offer(self, transport: Transport) -> None:
        """Send the requests of the window. The method returns when all requests are sent, or when
        another thread stops the loop."""
        try:
            self._offer(transport)
        finally:
            self._left.set()

    def _offer(self, transport: Transport) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """Stop sending, and wait until the method `offer` has returned in the sending thread.

        A call from the sending thread would wait forever.
        """
        self._stopped.set()
        self._left.wait()

    def requests(self, until_ns: int, from_ns: int = 0) -> Requests:
        """Return the present times and statuses of all requests with an intended send time in
        [from_ns, until_ns), as a copy."""
        part = slice(*np.searchsorted(self._known(), [from_ns, until_ns]).tolist())
        # Other threads write the times of a request before its status. Here, the status is copied
        # before the times, so the copy has the times of every request that has ended in the copy.
        status = self._status[part].copy()
        return Requests(
            self._intended_ns[part].copy(),
            self._sent_ns[part].copy(),
            self._done_ns[part].copy(),
            status,
        )

    def _known(self) -> NDArray[np.int64]:
        return self._intended_ns

    def _wait_until(self, time_ns: int) -> bool:
        """Wait until `time_ns`. Return False if another thread stopped the loop before
        `time_ns`."""
        while (wait_ns := time_ns - time.monotonic_ns()) > 0:
            if self._stopped.is_set():
                return False
            time.sleep(min(wait_ns, DOZE_NS) / 1e9)
        return not self._stopped.is_set()

    def _answered(
        self, i: int, done_ns: int, status: Status, message: str, sent_ns: int = 0
    ) -> None:
        if sent_ns:
            self._sent_ns[i] = sent_ns
        if status is not Status.PENDING:
            self._done_ns[i] = done_ns
            self._status[i] = status
        if message:
            self.errors.setdefault(status.name.lower(), message)


def silent_s(requests: Requests, now_ns: int) -> float:
    """Return the seconds for which the server has not responded, although requests are in flight; 0
    without requests in flight.

    The time counts from the last response, or from the send of the oldest request in flight,
    whichever is later. A request that timed out after the last response counts as in flight.
    """
    given = np.isin(requests.status, [Status.OK, Status.REFUSED, Status.ERROR])
    last_ns = int(requests.done_ns[given].max(initial=0))
    late = (requests.status == Status.TIMEOUT) & (requests.done_ns > last_ns)
    pending = (requests.status == Status.PENDING) & (requests.sent_ns > 0)
    owed_ns = requests.sent_ns[late | pending]
    return max(0, now_ns - max(last_ns, int(owed_ns.min()))) / 1e9 if len(owed_ns) else 0.0


def backlog_s(requests: Requests, start_ns: int, more: int) -> float:
    """Return the seconds that the server needs for the requests without a response and for `more`
    additional requests; 0 if the server has sent no response yet.

    The function assumes the mean speed of the server from `start_ns` to its last response. A
    request that timed out counts as a request without a response, although the server may already
    have executed it.
    """
    done_ns = requests.done_ns[requests.answered]
    if not len(done_ns):
        return 0.0
    open_ones = np.isin(requests.status, [Status.PENDING, Status.TIMEOUT])
    waiting = int(np.sum(open_ones & (requests.sent_ns > 0))) + more
    return waiting * int(done_ns.max() - start_ns) / len(done_ns) / 1e9


class OpenLoop(LoadLoop):
    """Sends every request at its intended time, whether or not earlier requests have ended.

    While `limit` requests are in flight, the loop drops each request that becomes due. A window
    with too many dropped requests is invalid.
    """

    def __init__(self, limit: int, intended_ns: Sequence[int] | NDArray[np.int64]) -> None:
        super().__init__(np.asarray(intended_ns, np.int64))
        self._limit = limit

    def _offer(self, transport: Transport) -> None:
        for i, intended_ns in enumerate(self._intended_ns.tolist()):
            if not self._wait_until(intended_ns):
                return
            if transport.in_flight >= self._limit:
                self._answered(i, 0, Status.UNSENT, f"{self._limit} requests are in flight")
                continue
            self._sent_ns[i] = time.monotonic_ns()
            transport.send(i, partial(self._answered, i))


class ClosedLoop(LoadLoop):
    """Keeps `concurrency` requests in flight: each response triggers the next request.

    In a closed loop, the intended send time of a request is its actual send time. If the server
    refuses a request, the loop pauses before it sends the next request. The pause doubles with each
    consecutive refusal, up to one second. A server with a full queue refuses requests at once.
    Without the pauses, such a server would get thousands of requests per second.
    """

    def __init__(self, start_ns: int, end_ns: int, concurrency: int) -> None:
        # Linux allocates a page only when the client writes to it, so a large array is cheap.
        super().__init__(np.zeros(round((end_ns - start_ns) / 1e9 * MAX_RPS) + concurrency, int))
        self._start_ns, self._end_ns, self._concurrency = start_ns, end_ns, concurrency
        self._count = 0
        self._turn = threading.Lock()
        self._refused = queue.SimpleQueue[tuple[int, int]]()
        """Requests to send after a pause, because the server refused a request. An entry contains
        the earliest send time in ns, and the number of consecutive refusals."""

    def _known(self) -> NDArray[np.int64]:
        return self._intended_ns[: self._count]

    def _offer(self, transport: Transport) -> None:
        if self._wait_until(self._start_ns):
            for _ in range(self._concurrency):
                self._send(transport)
            self._send_after_refusals(transport)

    def _send_after_refusals(self, transport: Transport) -> None:
        waiting: list[tuple[int, int]] = []
        while (now_ns := time.monotonic_ns()) < self._end_ns and not self._stopped.is_set():
            if waiting and waiting[0][0] <= now_ns:
                self._send(transport, heappop(waiting)[1])
                continue
            due_ns = waiting[0][0] if waiting else self._end_ns
            try:
                wait_s = min(due_ns - now_ns, DOZE_NS) / 1e9
                heappush(waiting, self._refused.get(timeout=wait_s))
            except queue.Empty:
                continue

    def _send(self, transport: Transport, refusals: int = 0) -> None:
        """Send the next request. Before this request, the server refused `refusals` consecutive
        requests."""
        with self._turn:  # the lock keeps the requests in the order of their times
            i, now_ns = self._count, time.monotonic_ns()
            if now_ns >= self._end_ns or self._stopped.is_set() or i == len(self._intended_ns):
                return
            self._intended_ns[i] = self._sent_ns[i] = now_ns
            self._count += 1
        transport.send(i, partial(self._next, transport, i, refusals))

    def _next(
        self,
        transport: Transport,
        i: int,
        refusals: int,
        done_ns: int,
        status: Status,
        message: str,
        sent_ns: int = 0,
    ) -> None:
        self._answered(i, done_ns, status, message)
        if status is Status.REFUSED:
            back_off_ns = min(FIRST_BACK_OFF_NS << min(refusals, 30), LONGEST_BACK_OFF_NS)
            self._refused.put((done_ns + back_off_ns, refusals + 1))
        else:
            self._send(transport)
