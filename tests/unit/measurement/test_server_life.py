"""Tests that the error after a running server died names the cause, not the first symptom."""

import subprocess
import threading
import time
from types import SimpleNamespace

import pytest

from perseus.measurement import server_life
from perseus.measurement.server_life import ServerLife, reporting_end_of_server
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import server_times
from perseus.traffic.client import ClientError

NOBODY_LISTENS = "127.0.0.1:9"


@pytest.fixture
def process():
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_a_refused_connection_of_a_dying_server_is_told_as_its_death(process):
    server = RunningServer(NOBODY_LISTENS, NOBODY_LISTENS, "", process.pid)
    dies_later = threading.Timer(0.3, process.kill)
    dies_later.start()
    with (
        pytest.raises(ServerError, match="the server ended during the measurement"),
        reporting_end_of_server(server),
    ):
        server_times(server, "tenant")


def test_a_client_that_finds_nobody_is_told_as_the_death_of_its_server(process):
    server = RunningServer(NOBODY_LISTENS, NOBODY_LISTENS, "", process.pid)
    with pytest.raises(ClientError), reporting_end_of_server(server):
        raise ClientError("the client of tenant died")
    process.kill()
    with (
        pytest.raises(ServerError, match="the server ended during the measurement"),
        reporting_end_of_server(server),
    ):
        raise ClientError("the client of tenant died")


@pytest.mark.parametrize("lives_elsewhere", [False, True])
def test_a_refused_connection_of_a_living_server_is_told_as_it_is(process, lives_elsewhere):
    pid = None if lives_elsewhere else process.pid
    server = RunningServer(NOBODY_LISTENS, NOBODY_LISTENS, "", pid)
    with (
        pytest.raises(ServerError, match="no statistics of tenant"),
        reporting_end_of_server(server),
    ):
        server_times(server, "tenant")


@pytest.mark.parametrize("served", [(0, 1), (0,), (1,), ()])
def test_a_server_far_behind_is_not_silent_while_it_works_on_what_was_given_up(
    process, monkeypatch, served
):
    """All responses of this server time out in the client.

    A server counts as silent if it executes no request of one of the tenants.
    """
    monkeypatch.setattr(server_life, "SILENT_S", 0.2)
    started_s = time.monotonic()
    waiting = [SimpleNamespace(silent_s=lambda: time.monotonic() - started_s)] * 2
    life = ServerLife(RunningServer(NOBODY_LISTENS, NOBODY_LISTENS, "", process.pid), waiting, 0)
    time.sleep(0.3)
    for client in served:
        life.served(client)
    if len(served) == 2:
        life.require()
        time.sleep(0.3)
    with pytest.raises(ServerError, match="answered no request for 0 s"):
        life.require()
