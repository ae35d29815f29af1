"""Tests that Perseus subtracts no counters from before and after a load of the model, because the
load resets the counters."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

import numpy as np
import pytest

from perseus.measurement import live_load
from perseus.measurement.decomposition import decompose
from perseus.measurement.live_load import LiveLoad
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import ServerTimes
from perseus.traffic.requests import MS, Requests, Status


def times(requests: int, queue_ms: float) -> ServerTimes:
    return ServerTimes(requests, round(queue_ms * MS), 0, 7 * MS * requests, 0)


class Client:
    """A client whose requests are answered on time."""

    model, steps = "tenant", ()

    def silent_s(self) -> float:
        return 0.0

    def look(self, now_ns: int) -> SimpleNamespace:
        empty_record = np.empty(0, np.int64)
        requests = Requests(empty_record, empty_record, empty_record, np.empty(0, np.uint8))
        return SimpleNamespace(requests=requests, cpu_s=(0.0,))


def seen_queues_ms(monkeypatch, readings):
    """Return the mean queue times in a window, in ms, if the server reports the counters `readings`
    one after the other."""
    told = iter(readings)
    monkeypatch.setattr(live_load, "ALIVE_S", 0.01)
    monkeypatch.setattr(live_load, "tenant_times", lambda *_, **__: next(told, readings[-1]))
    load = LiveLoad(
        RunningServer("", "", "", os.getpid()),
        [Client()],
        time.monotonic_ns(),
        server_cores=[],
        client_core_count=1,
        longest_sla_s=1.0,
    )
    (queue_ms,) = load.until(0.3).queue_ms
    return queue_ms[:, 1].tolist()


@pytest.mark.parametrize(
    ("readings", "expected_ms"),
    [
        ([times(100, 100), times(110, 130), times(120, 150)], [3, 2]),
        # The model is loaded again after 110 requests. The first 4 requests after the new load are
        # the base of the next difference.
        ([times(100, 100), times(110, 130), times(4, 40), times(10, 70), times(15, 75)], [3, 5, 1]),
        ([times(100, 100), times(0, 0), times(10, 20)], [2]),
        # The number of requests rises, but the total queue time falls, so the model was loaded
        # again.
        ([times(100, 1000), times(130, 260), times(140, 300)], [4]),
    ],
    ids=["loaded once", "loaded anew", "loaded anew and idle", "more since than before"],
)
def test_queue_times_go_on_after_a_load(monkeypatch, readings, expected_ms):
    assert seen_queues_ms(monkeypatch, readings) == pytest.approx(expected_ms)


def test_what_was_served_is_counted_within_one_load():
    assert times(15, 75).since(times(10, 70)) == times(5, 5)
    assert times(15, 75).since(times(20, 70)) is None


def test_a_window_with_a_load_in_it_is_not_taken_apart():
    """Six of the ten responses came before the model was loaded again. The counters cover only the
    other four responses."""
    start_ns = np.arange(10) * 10**9
    status = np.full(10, Status.OK, np.uint8)
    requests = Requests(start_ns, start_ns, start_ns + 20 * MS, status)
    assert decompose(times(50, 100), times(60, 120), requests).queue_ms == pytest.approx(2)
    assert np.isnan(decompose(times(50, 100), times(4, 8), requests).queue_ms)
    assert np.isnan(decompose(times(50, 100), times(60, 8), requests).queue_ms)


@pytest.mark.parametrize("failed", [Status.TIMEOUT, Status.ERROR, Status.REFUSED])
def test_a_request_that_failed_in_the_client_is_no_answer_of_the_server(failed):
    """Triton executes requests that the client has given up, and counts them as successes."""
    start_ns = np.arange(10) * 10**9
    status = np.full(10, Status.OK, np.uint8)
    status[3] = failed
    requests = Requests(start_ns, start_ns, start_ns + 20 * MS, status)
    assert np.isnan(decompose(times(0, 0), times(10, 20), requests).queue_ms)
    assert decompose(times(0, 0), times(9, 18), requests).queue_ms == pytest.approx(2)
