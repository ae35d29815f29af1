"""Tests of missing clients and servers.

The tests measure no times, so other tests may run beside them.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from fake_server import FakeGrpcServer, FakeHttpServer, FakeServer
from unit.traffic.test_client import route, run

from perseus.traffic import client as client_module
from perseus.traffic.client import Client, ClientError, _Process
from perseus.traffic.requests import Status
from perseus.traffic.sender import Setup


@pytest.fixture(params=[FakeGrpcServer, FakeHttpServer], ids=["grpc", "http"])
def server(request) -> Iterator[FakeServer]:
    server = request.param()
    yield server
    server.stop()


def client_of(server: FakeServer, processes: int = 1) -> Client:
    return Client("tenant", route(server.address, server.protocol), [0], processes)


def test_a_server_that_is_gone_refuses(server):
    with client_of(server) as client:
        server.stop()
        _, _, result = run(client, np.arange(0, 0.3, 0.05), 0.5)
    assert np.all(result.requests.status == Status.REFUSED)


def test_a_client_that_dies_is_noticed_at_once(server):
    with client_of(server) as client:
        (process,) = client._processes
        process._process.kill()
        process._process.wait()
        for command in (client.look, client.stop):
            with pytest.raises(ClientError, match="tenant died"):
                command(0)


def test_a_client_that_did_not_answer_in_time_is_lost_for_good(server, monkeypatch):
    """The late response to one command must not count as the response to the next command."""
    with client_of(server) as client:
        (process,) = client._processes
        monkeypatch.setattr("perseus.traffic.client.ANSWER_S", 0.2)
        process._process.send_signal(signal.SIGSTOP)
        with pytest.raises(ClientError, match="tenant does not answer"):
            client.look(0)
        process._process.send_signal(signal.SIGCONT)
        for call in (partial(client.stop, 0.0, 0.0), client.silent_s):
            with pytest.raises(ClientError, match="tenant does not answer"):
                call()
        assert process._process.wait(30) == 0


def test_a_signal_to_every_process_of_a_job_does_not_end_a_client(server):
    """The job gets the signal too, and decides whether its client ends."""
    with client_of(server) as client:
        (process,) = client._processes
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process._process.send_signal(number)
        _, _, result = run(client, np.arange(0, 0.3, 0.05), 0.5)
    assert np.all(result.requests.answered)


def test_one_of_several_processes_that_dies_is_noticed(server):
    with client_of(server, processes=3) as clients:
        clients._processes[1]._process.kill()
        clients._processes[1]._process.wait()
        with pytest.raises(ClientError, match="tenant died"):
            run(clients, np.arange(0, 0.2, 0.02), 0.2)


def test_a_client_ends_whose_job_was_killed_before_it_was_ready(server):
    process = _Process("tenant", Setup(route(server.address, server.protocol), [0])).__enter__()
    process._pipe.close()
    try:
        assert process._process.wait(60) == 0
    finally:
        process._process.kill()


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_server_that_cannot_be_reached_is_said(protocol):
    client = Client("tenant", route("127.0.0.1:1", protocol), [0], processes=2)
    reason = r"^the client of tenant: no (gRPC|HTTP) connection.*(refused|Connect call failed)"
    with pytest.raises(ClientError, match=reason), client:
        pass


def test_senders_find_their_modules_where_this_process_was_told_to_look(monkeypatch):
    """The folders of Perseus come first, so that no other module of the same name is loaded."""
    monkeypatch.setenv("PYTHONPATH", "/a/site:/another")
    ours = str(Path(client_module.__file__).parents[2])
    assert client_module._module_folders() == [ours, "/a/site", "/another"]
    monkeypatch.delenv("PYTHONPATH")
    assert client_module._module_folders() == [ours]
