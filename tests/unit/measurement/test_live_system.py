"""Tests of windows on a small server in this process: each window begins with an empty queue."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from unittest.mock import Mock

import numpy as np
import pytest
from fake_server import FakeGrpcServer
from live_systems import of_one_client

from perseus.measurement import live_load, live_system
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.raw_results import RequestsWriter
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.traffic.client import Client
from perseus.traffic.requests import Status
from perseus.traffic.route import Route, inline

pytestmark = pytest.mark.alone

INPUTS = inline([np.zeros((1, 3, 8, 8), np.float32)])


@pytest.fixture
def server() -> Iterator[FakeGrpcServer]:
    """Yield a server that needs 0.2 s for each request."""
    server = FakeGrpcServer()
    server.service_s = 0.2
    yield server
    server.stop()


@pytest.fixture
def system(server, tmp_path, monkeypatch) -> Iterator[LiveSystem]:
    monkeypatch.setattr(live_system, "IDLE_S", 1.0)
    running = RunningServer(server.address, "", "", os.getpid(), extensions=frozenset())
    route = Route("grpc", server.address, "tenant", INPUTS, timeout_s=5.0)
    with (
        Client("tenant", route, [0]) as client,
        RequestsWriter(tmp_path / "requests.parquet") as writer,
    ):
        yield of_one_client(running, client, writer, longest_sla_s=0.1)


def test_a_healthy_server_has_enough_time_for_the_queue_of_a_closed_loop(server, system):
    """The queue of 16 requests takes 3.2 s, three times as long as the window."""
    with system.offer_closed([16], 1.0) as load:
        (requests,) = load.until(1.0).requests
    assert 3 <= requests.count(Status.OK) <= 5 and requests.count(Status.PENDING) == 16
    served = server.served
    time.sleep(0.3)
    assert server.served == served


def test_a_server_that_answers_no_more_ends_the_window(server, system):
    with (
        pytest.raises(ServerError, match="tenant: the server did not empty its queue within 2 s"),
        system.offer_closed([1], 1.5) as load,
    ):
        load.until(1.0)
        server.service_s = 3.0
        load.until(1.5)


def test_a_server_that_fails_at_the_start_of_a_window_keeps_its_requests(system, monkeypatch):
    def fail(*arguments):
        time.sleep(0.3)
        raise ServerError("no statistics")

    monkeypatch.setattr(live_load, "tenant_times", fail)
    stored = Mock(wraps=system._writer.add)
    monkeypatch.setattr(system._writer, "add", stored)
    with pytest.raises(ServerError, match="no statistics"), system.offer([20.0], 1.0):
        pass
    _, (requests,) = stored.call_args.args
    assert len(requests) > 0
