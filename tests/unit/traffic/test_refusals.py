"""Tests that a closed loop backs off from a full queue, and that a window does not fail because of
refusals alone."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from perseus.measurement.live_system import failures
from perseus.traffic.loops import ClosedLoop
from perseus.traffic.requests import Status


class FullQueue:
    """A transport whose server serves one request at a time.

    At most `most` requests wait or run.
    """

    def __init__(self, most: int, service_s: float = 0.01) -> None:
        self._most, self._service_s = most, service_s
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self.inside = 0

    def send(self, number: int, answered: Any) -> None:
        with self._lock:
            is_full = self.inside == self._most
            self.inside += not is_full
        if is_full:
            answered(time.monotonic_ns(), Status.REFUSED, "Exceeds maximum queue size")
        else:
            threading.Thread(target=self._serve, args=[answered]).start()

    def _serve(self, answered: Any) -> None:
        with self._turn:
            time.sleep(self._service_s)
        with self._lock:
            self.inside -= 1
        answered(time.monotonic_ns(), Status.OK, "")


def offered(transport: FullQueue, concurrency: int, seconds: float) -> Any:
    start_ns = time.monotonic_ns()
    end_ns = start_ns + round(seconds * 1e9)
    loop = ClosedLoop(start_ns, end_ns, concurrency)
    loop.offer(transport)
    while transport.inside:
        time.sleep(0.01)
    return loop.requests(end_ns)


def test_a_closed_loop_asks_a_queue_that_is_always_full_ever_more_rarely():
    """The client sends each of 4 refused requests again after 10 ms, and doubles the delay after
    each further refusal."""
    found = offered(FullQueue(most=0), 4, 0.5)
    assert np.all(found.status == Status.REFUSED)
    assert 4 < len(found) <= 4 * 6
    assert np.all(np.diff(found.intended_ns) >= 0)


def test_what_finds_room_goes_on_while_the_rest_backs_off():
    found = offered(FullQueue(most=3), 8, 1.0)
    assert 0 < found.count(Status.REFUSED) <= 8 * 7
    assert found.count(Status.OK) > 8


OK, REFUSED, ERROR, PENDING = Status.OK, Status.REFUSED, Status.ERROR, Status.PENDING


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ([OK] * 10, 0),
        ([REFUSED] * 9 + [OK], 0),  # three times the load that a queue of 2 accepts
        ([OK] * 2 + [REFUSED] * 900, 0),  # Triton's queue stalls
        ([PENDING] * 2 + [REFUSED] * 9, 9),  # no request is answered
        ([REFUSED] * 10, 10),
        ([OK, ERROR, ERROR], 2),
        ([OK, ERROR, ERROR, OK], 0),
        ([ERROR, ERROR, REFUSED, OK], 0),
        ([], 0),
    ],
)
def test_a_server_that_refuses_most_requests_and_answers_some_is_not_broken(status, expected):
    assert failures(np.array(status, np.uint8)) == expected
