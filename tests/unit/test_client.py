"""The client against a small gRPC server with a known service time, in this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent import futures

import grpc
import numpy as np
import pytest

from perseus.client import Client, ClientError, sequential_ms, serialise
from perseus.sender import METHOD
from perseus.window import Status

IMAGE = np.zeros((1, 3, 8, 8), np.float32)


class Server:
    """Answers ModelInfer after `service_s`, one request at a time; or never, or with errors."""

    def __init__(self) -> None:
        self.service_s = 0.005
        self.fail = False
        self.served = 0
        self._lock = threading.Lock()
        _, service, method = METHOD.split("/")
        handler = grpc.unary_unary_rpc_method_handler(self._infer)
        self._server = grpc.server(futures.ThreadPoolExecutor(200))
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, {method: handler})]
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _infer(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if self.fail:
            context.abort(grpc.StatusCode.INTERNAL, "the model is on fire")
        with self._lock:
            if context.is_active():
                time.sleep(self.service_s)
                self.served += 1
        return b"answer"

    def stop(self) -> None:
        self._server.stop(0)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with Client("tenant", server.address, serialise("tenant", IMAGE), [0], timeout_s=2) as client:
        yield client


def run(client: Client, offsets_s: np.ndarray, seconds: float, patience_s: float = 1.0):
    """One window; returns what was seen at its end, and its result."""
    start_ns = time.monotonic_ns() + 50_000_000
    client.start(start_ns, offsets_s)
    end_ns = start_ns + round(seconds * 1e9)
    time.sleep((end_ns - time.monotonic_ns()) / 1e9)
    seen = client.look(end_ns)
    client.stop(patience_s)
    return start_ns, seen, client.result()


def test_requests_are_sent_at_their_absolute_times(client):
    offsets = np.arange(0, 1, 0.02)
    start_ns, _, result = run(client, offsets, 1.0)
    part = result.requests
    assert np.array_equal(part.intended_ns, start_ns + np.round(offsets * 1e9).astype(np.int64))
    assert np.all(part.answered) and len(part) == 50
    assert np.all(part.sent_ns >= part.intended_ns) and np.all(part.done_ns > part.sent_ns)
    assert np.median(part.latency_ms(0)) >= 5


def test_a_slow_answer_does_not_delay_the_next_send(server, client):
    """Open loop: at 100/s into a server that manages 20/s, all are sent, and latencies grow."""
    server.service_s = 0.05
    _, seen, result = run(client, np.arange(0, 1, 0.01), 1.0, patience_s=0.1)
    assert np.all(seen.requests.sent_ns > 0)
    assert np.percentile(seen.requests.send_lag_ms(int(seen.requests.intended_ns[-1])), 90) < 50
    assert np.sum(seen.requests.status == Status.PENDING) > 60
    assert np.sum(result.requests.answered) < 60


def test_stopping_waits_until_the_server_is_idle(server, client):
    server.service_s = 0.05
    run(client, np.arange(0, 0.5, 0.01), 0.5, patience_s=0.1)
    before = server.served
    time.sleep(0.2)
    assert server.served == before


def test_a_window_can_end_early_and_the_next_one_is_clean(client):
    client.start(time.monotonic_ns() + 20_000_000, np.arange(0, 60, 0.1))
    time.sleep(0.35)
    client.stop(1.0)
    assert 2 <= len(client.result().requests) <= 5
    assert len(run(client, np.array([0.0, 0.1]), 0.2)[2].requests) == 2


def test_errors_are_counted_with_their_message(server, client):
    server.fail = True
    _, _, result = run(client, np.arange(0, 0.2, 0.02), 0.3)
    assert np.all(result.requests.status == Status.ERROR)
    assert result.error == "INTERNAL: the model is on fire"


def test_a_request_that_takes_too_long_times_out(server, client):
    server.service_s = 2.5
    _, _, result = run(client, np.array([0.0]), 0.1, patience_s=3)
    assert result.requests.status.tolist() == [Status.TIMEOUT]


def test_a_server_that_is_gone_refuses(server, client):
    server.stop()
    _, _, result = run(client, np.arange(0, 0.3, 0.05), 0.5)
    assert np.all(result.requests.status == Status.REFUSED)


def test_cpu_time_of_the_client_is_known(client):
    _, seen, _ = run(client, np.arange(0, 0.5, 0.005), 0.5)
    assert 0 < seen.cpu_s < 0.5


def test_a_client_that_dies_is_noticed_at_once(client):
    client._process.kill()
    client._process.wait()
    for command in (client.look, client.stop):
        with pytest.raises(ClientError, match="tenant died"):
            command(0)


def test_a_server_that_cannot_be_reached_is_said():
    client = Client("tenant", "127.0.0.1:1", b"", [0], timeout_s=1)
    with pytest.raises(ClientError), client:
        pass


def test_without_load_latencies_are_those_of_the_service(server):
    assert np.median(sequential_ms(server.address, b"", 10, 5.0)) == pytest.approx(6, abs=3)
