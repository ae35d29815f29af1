"""Tests of the commands to a sender, in the process of the test."""

from __future__ import annotations

import errno
import os
import queue
import threading
import time
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import numpy as np
import pytest

from perseus.traffic import sender
from perseus.traffic.requests import Requests, Status
from perseus.traffic.route import Route

S = 10**9
HOUR_S = 3600


class AtOnce:
    """A transport whose server answers at once."""

    most_in_flight, in_flight = 100, 0

    def send(self, number, answered):
        answered(time.monotonic_ns(), Status.OK, "")


@pytest.fixture
def pipe() -> Iterator[Connection]:
    """Return the pipe to a sender whose requests time out after 5 s."""
    ours, theirs = Pipe()
    route = Route("grpc", "nowhere:1", "tenant", inputs=((),), timeout_s=5.0)
    loops, transport = queue.SimpleQueue(), AtOnce()
    obeying = threading.Thread(target=sender._obey, args=(theirs, loops, transport, route, True))

    def offer() -> None:
        while (loop := loops.get()) is not None:
            loop.offer(transport)

    offering = threading.Thread(target=offer)
    for thread in (obeying, offering):
        thread.start()
    assert ours.recv() is True
    yield ours
    ours.close()
    for thread in (obeying, offering):
        thread.join()


def test_a_question_in_a_window_of_an_hour_does_not_copy_the_requests_of_this_hour(
    pipe, monkeypatch
):
    """In the process that sends, a copy of millions of requests would delay the next sends."""
    asked: list[Requests] = []
    monkeypatch.setattr(sender, "silent_s", lambda requests, now_ns: asked.append(requests))
    pipe.send(("open", time.monotonic_ns() - np.arange(HOUR_S, 0, -1) * S))
    pipe.send(("silence",))
    pipe.recv()
    assert len(asked[0]) == pytest.approx(10, abs=1), "twice the time-out, at one request a second"
    pipe.send(("look", time.monotonic_ns()))
    assert len(pipe.recv().requests) == HOUR_S


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL, errno.ENOSYS])
def test_a_system_without_priorities_for_processes_is_no_error(monkeypatch, number):
    def refuse(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert not sender._run_promptly()
