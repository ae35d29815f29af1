"""Tests of the client against a small server with a known service time, in this process."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import Mock, call

import numpy as np
import pytest
from fake_server import FakeGrpcServer, FakeHttpServer, FakeServer

from perseus.traffic import grpc_transport, http_transport
from perseus.traffic.client import Client, sequential_ms
from perseus.traffic.loops import silent_s
from perseus.traffic.requests import Requests, Status
from perseus.traffic.route import Route, inline

pytestmark = pytest.mark.alone

INPUTS = inline([np.full((1, 3, 8, 8), value, np.float32) for value in range(3)])


ERRORS = {
    "grpc": {
        "error": "INTERNAL: the model is on fire",
        "refused": "UNAVAILABLE: the model is on fire",
    },
    "http": {
        "error": "HTTP 500: the model is on fire",
        "refused": "HTTP 503: the model is on fire",
    },
}
SERIALISED = {
    "grpc": [grpc_transport.serialise("tenant", each) for each in INPUTS],
    "http": [http_transport.serialise(each)[0] for each in INPUTS],
}


def route(address: str, protocol: str = "grpc") -> Route:
    return Route(protocol, address, "tenant", INPUTS, timeout_s=2.0)


@pytest.fixture(scope="module", params=[FakeGrpcServer, FakeHttpServer], ids=["grpc", "http"])
def started(request) -> Iterator[FakeServer]:
    server = request.param()
    yield server
    server.stop()


@pytest.fixture
def server(started: FakeServer) -> FakeServer:
    """Return the server of all tests after a reset."""
    started.reset()
    return started


@pytest.fixture(scope="module")
def connected(started: FakeServer) -> Iterator[Client]:
    with Client("tenant", route(started.address, started.protocol), [0]) as client:
        yield client


@pytest.fixture
def client(connected: Client, server: FakeServer) -> Client:
    """Return one client for all tests, as for all windows of a search."""
    return connected


@pytest.fixture(scope="module")
def clients(started: FakeServer) -> Iterator[Client]:
    """Yield a client of three processes."""
    with Client("tenant", route(started.address, started.protocol), [0], processes=3) as client:
        yield client


def run(client: Client, offsets_s: np.ndarray, seconds: float, patience_s: float = 1.0):
    """Run a window, and return its start in ns, the observation at its end, and its result."""
    start_ns = time.monotonic_ns() + 50_000_000
    client.start(start_ns, offsets_s)
    return start_ns, *finish(client, start_ns + round(seconds * 1e9), patience_s)


def run_closed(client: Client, concurrency: int, seconds: float, patience_s: float = 1.0):
    start_ns = time.monotonic_ns() + 50_000_000
    client.start_closed(start_ns, seconds, concurrency)
    return start_ns, *finish(client, start_ns + round(seconds * 1e9), patience_s)


def finish(client: Client, end_ns: int, patience_s: float):
    time.sleep((end_ns - time.monotonic_ns()) / 1e9)
    seen = client.look(end_ns)
    client.stop(patience_s)
    return seen, client.result()


def test_requests_are_sent_at_their_absolute_times(client):
    offsets = np.arange(0, 1, 0.02)
    start_ns, _, result = run(client, offsets, 1.0)
    part = result.requests
    assert np.array_equal(part.intended_ns, start_ns + np.round(offsets * 1e9).astype(np.int64))
    assert np.all(part.answered) and len(part) == 50
    assert np.all(part.sent_ns >= part.intended_ns) and np.all(part.done_ns > part.sent_ns)
    assert np.median(part.sent_ns - part.intended_ns) > 0  # measured, not assumed
    assert np.median(part.latency_ms(0)) >= 5


def test_a_slow_answer_does_not_delay_the_next_send(server, client):
    """In this open loop, the client sends 100/s to a server that can serve 20/s.

    The client sends every request, and the latency grows.
    """
    server.service_s = 0.05
    _, seen, result = run(client, np.arange(0, 0.5, 0.01), 0.5, patience_s=0.1)
    assert np.all(seen.requests.sent_ns > 0)
    assert np.percentile(seen.requests.send_lag_ms(int(seen.requests.intended_ns[-1])), 90) < 50
    assert np.sum(seen.requests.status == Status.PENDING) > 30
    assert np.sum(result.requests.answered) < 30


def test_stopping_waits_until_the_server_is_idle(server, client):
    server.service_s = 0.05
    run(client, np.arange(0, 0.3, 0.01), 0.3, patience_s=0.1)
    before = server.served
    time.sleep(0.2)
    assert server.served == before


def test_it_waits_for_what_timed_out_too(server, client):
    """Requests that timed out still delay the next requests on the server."""
    server.service_s = 0.25
    _, _, result = run(client, np.zeros(16), 2.5, patience_s=0.1)
    assert result.requests.count(Status.TIMEOUT) >= 8 and result.idle
    before = server.served
    time.sleep(0.5)
    assert server.served == before >= 16


def test_a_full_queue_that_refuses_the_question_is_asked_again(server, client):
    server.service_s = 5.0
    client.start(time.monotonic_ns(), np.zeros(1))
    time.sleep(2.5)  # until the request has timed out
    server.service_s, server.fail = 0.005, "refused"
    threading.Timer(0.5, setattr, (server, "fail", "")).start()
    client.stop(0.1, idle_s=20.0)
    assert client.result().idle
    assert server.fail == ""


def test_a_server_that_is_not_idle_in_time_is_not_called_so(server, client):
    server.service_s = 0.25
    client.start(time.monotonic_ns(), np.zeros(16))
    time.sleep(2.5)
    client.stop(0.1, idle_s=0.3)
    assert not client.result().idle
    while server.at_once:  # so that the next test has an idle server
        time.sleep(0.05)


def test_a_window_can_end_early_and_the_next_one_is_clean(client):
    client.start(time.monotonic_ns() + 20_000_000, np.arange(0, 60, 0.1))
    time.sleep(0.35)
    client.stop(1.0)
    assert 2 <= len(client.result().requests) <= 5
    assert len(run(client, np.array([0.0, 0.1]), 0.2)[2].requests) == 2


def test_errors_are_counted_with_their_message(server, client):
    server.fail = "error"
    client.start(time.monotonic_ns(), np.arange(0, 0.2, 0.02))
    time.sleep(0.1)
    server.fail = "refused"
    time.sleep(0.2)
    client.stop(1.0)
    result = client.result()
    status, kinds = result.requests.status, (Status.ERROR, Status.REFUSED)
    assert sum(np.sum(status == kind) for kind in kinds) == 10
    assert all(np.any(status == kind) for kind in kinds)
    assert result.errors == ERRORS[server.protocol]


def test_a_request_that_takes_too_long_times_out(server, client):
    server.service_s = 2.5
    _, _, result = run(client, np.array([0.0]), 0.1, patience_s=3)
    assert result.requests.status.tolist() == [Status.TIMEOUT]
    assert list(result.errors) == ["timeout"]


def test_cpu_time_of_the_client_is_known(client):
    _, seen, _ = run(client, np.arange(0, 0.5, 0.005), 0.5)
    (cpu_s,) = seen.cpu_s
    assert 0 < cpu_s < 0.5


def test_without_load_latencies_are_those_of_the_service(server):
    assert np.median(
        sequential_ms(route(server.address, server.protocol), 10, 5.0)
    ) == pytest.approx(6, abs=3)


@pytest.mark.parametrize(("of_load_s", "of_single_s"), [(2.0, 60), (90.0, 90.0)])
def test_a_single_request_has_at_least_a_minute(monkeypatch, of_load_s, of_single_s):
    """A slow server may need longer for its first request than the load allows a request."""
    transport = Mock()
    monkeypatch.setattr("perseus.traffic.client.connect", lambda _: nullcontext(transport))
    sequential_ms(replace(route("127.0.0.1:1"), timeout_s=of_load_s), 3, 5.0)
    assert transport.infer.call_args_list == [call(i, timeout_s=of_single_s) for i in range(3)]


def test_inputs_take_turns(server, client):
    run(client, np.arange(0, 0.6, 0.02), 0.6)
    sent = Counter(server.received)
    assert sent == dict.fromkeys(SERIALISED[server.protocol], 10)


# Closed loop


@pytest.mark.parametrize("which", ["client", "clients"])
def test_closed_loop_keeps_as_many_requests_in_flight_as_asked(server, request, which):
    client = request.getfixturevalue(which)
    start_ns, seen, result = run_closed(client, 4, 0.5)
    part = result.requests
    assert server.most_at_once == 4
    assert np.all(part.answered)
    assert 40 < len(part) <= 104  # one request of 5 ms at a time
    assert np.array_equal(part.intended_ns, part.sent_ns)
    assert np.all(np.diff(part.intended_ns) >= 0)
    assert start_ns <= part.intended_ns[0] and part.intended_ns[-1] < start_ns + 0.5e9
    # with one sender, each request except the first four follows a response
    if which == "client":
        assert np.all(part.intended_ns[4:] >= np.sort(part.done_ns)[: len(part) - 4])
    assert 0 <= len(part) - len(seen.requests) <= 4


def test_a_closed_loop_that_is_stopped_early_sends_no_more(server, client):
    client.start_closed(time.monotonic_ns(), 60.0, 2)
    time.sleep(0.3)
    client.stop(1.0)
    result = client.result()
    assert np.all(result.requests.answered) and result.idle
    served = server.served
    assert len(result.requests) == served > 10
    time.sleep(0.1)
    assert server.served == served


def test_a_closed_loop_counts_errors_and_goes_on(server, client):
    server.fail = "error"
    _, _, result = run_closed(client, 2, 0.3)
    assert len(result.requests) > 10
    assert np.all(result.requests.status == Status.ERROR)
    assert result.errors == {"error": ERRORS[server.protocol]["error"]}


# Several processes


def test_several_processes_send_exactly_what_one_would(server, clients):
    offsets = np.sort(np.random.default_rng(0).uniform(0, 0.5, 100))
    server.service_s = 0.001
    start_ns, seen, result = run(clients, offsets, 0.5)
    part = result.requests
    assert np.array_equal(part.intended_ns, start_ns + np.round(offsets * 1e9).astype(np.int64))
    assert np.all(part.answered) and np.all(part.done_ns > part.sent_ns)
    assert np.all(part.sent_ns >= part.intended_ns)
    assert len(seen.cpu_s) == 3 and all(0 < cpu_s < 0.5 for cpu_s in seen.cpu_s)


# Silence


def requests(*rows: tuple[float, float, Status]) -> Requests:
    """Return requests. Each row has the send time, the response time (both in s) and the status."""
    sent, done, status = (np.array(column) for column in zip(*rows, strict=True))
    sent_ns, done_ns = ((times * 1e9).astype(np.int64) for times in (sent, done))
    return Requests(sent_ns, sent_ns, done_ns, status.astype(np.uint8))


def test_a_server_is_silent_while_it_owes_answers():
    answered, refused = (1.0, 2.0, Status.OK), (1.0, 3.0, Status.REFUSED)
    pending, late = (1.5, 0, Status.PENDING), (1.5, 6.5, Status.TIMEOUT)
    later = (6.0, 0, Status.PENDING)
    cases = {
        (answered,): 0,  # no response is due
        (pending,): 8.5,  # since the send time of the request
        (answered, pending): 8,  # since the last response
        (refused, pending): 7,  # an error is also a response
        (answered, later): 4,  # no response was due before this request
        (answered, late, later): 8,  # a time-out is no response
        (late,): 8.5,
        (answered, (1.5, 1.8, Status.TIMEOUT)): 0,  # a response came later than the time-out
        (answered, (0, 0, Status.UNSENT)): 0,
    }
    for rows, expected in cases.items():
        assert silent_s(requests(*rows), 10 * 10**9) == pytest.approx(expected), rows


def test_a_client_tells_how_long_the_server_is_silent(server, client):
    server.service_s = 1.5
    client.start(time.monotonic_ns(), np.array([0.0]))
    time.sleep(0.8)
    assert 0.2 < client.silent_s() < 1.5
    client.stop(2.0)
    assert client.result().idle
    assert client.silent_s() == 0
