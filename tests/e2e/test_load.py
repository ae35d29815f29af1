"""The load client against a real tritonserver."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pytest
from e2e.test_server import NOTHING, SCRIPTS, backends, left_behind, wait_until, write_repository
from live_systems import of_one_client

from perseus.host.orphans import SHM
from perseus.measurement.raw_results import RequestsWriter
from perseus.serving.failures import ServerError
from perseus.serving.launchers.embedded import embedded_triton
from perseus.serving.running_server import RunningServer
from perseus.traffic.client import Client
from perseus.traffic.connect import connect
from perseus.traffic.requests import Status
from perseus.traffic.route import Route, inline, shared
from perseus.traffic.transport import RequestFailedError

__all__ = ["backends"]

BATCHES = [
    np.random.default_rng(seed).normal(size=(1 + seed, 3, 8, 8)).astype(np.float32)
    for seed in range(3)
]


@pytest.fixture
def server(tmp_path: Path, backends: Path) -> Iterator[RunningServer]:
    repository = write_repository(tmp_path)
    with embedded_triton(repository, tmp_path / "log", [0], backends=backends) as server:
        yield server


def route(server: RunningServer, inputs, protocol: str = "grpc", timeout_s: float = 10) -> Route:
    address = {"grpc": server.grpc_address, "http": server.http_address}[protocol]
    return Route(protocol, address, "tiny", inputs, timeout_s)


def answers(way: Route, requests: int = len(BATCHES)) -> list[np.ndarray]:
    with connect(way) as transport:
        return [transport.infer(i, timeout_s=10)["output"] for i in range(requests)]


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_shared_memory_answers_as_plain_bytes_do(server, protocol):
    plain = answers(route(server, inline(BATCHES), protocol))
    with shared(BATCHES, server.grpc_address) as inputs:
        # a request contains only the address of its data
        assert all(each.size_bytes == 0 for (each,) in inputs)
        found = answers(route(server, inputs, protocol))
        assert len(input_regions(server.pid)) == 1
        # the region has no file that could remain after the process
        assert list(SHM.glob(f"*-{os.getpid()}-*-input")) == []
    for answer, other, batch in zip(found, plain, BATCHES, strict=True):
        assert answer.tobytes() == other.tobytes()
        np.testing.assert_array_equal(answer, np.maximum(batch, 0))
    assert input_regions(server.pid) == set()
    with pytest.raises(RequestFailedError, match="Unable to find shared memory region"):
        answers(route(server, inputs, protocol))


def test_shared_memory_goes_once_the_request_in_flight_is_answered(tmp_path, backends):
    repository = write_repository(tmp_path, execute_s=0.5)
    with (
        embedded_triton(repository, tmp_path / "log", [0], backends=backends) as server,
        ThreadPoolExecutor() as pool,
    ):
        with shared(BATCHES, server.grpc_address) as inputs:
            found = pool.submit(answers, route(server, inputs), requests=1)
            time.sleep(0.2)
            assert not found.done()
        assert input_regions(server.pid) == set()
        np.testing.assert_array_equal(found.result()[0], np.maximum(BATCHES[0], 0))


def input_regions(pid: int) -> set[str]:
    """Return the shared memory regions of inputs that a process has mapped."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    return set(re.findall(r"/dev/shm/(perseus-triton-\S+-input)", maps))


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_load_from_shared_memory(server, protocol):
    with (
        shared(BATCHES, server.grpc_address) as inputs,
        Client("tiny", route(server, inputs, protocol), [0]) as client,
    ):
        client.start_closed(time.monotonic_ns(), 0.5, 4)
        time.sleep(0.6)
        client.stop(1.0)
        result = client.result()
    assert np.all(result.requests.answered) and len(result.requests) > 20


# Other processes on the host


def test_who_works_on_the_servers_core_is_seen_and_waited_for(server, tmp_path):
    """The message may name another process, because other processes may run on this host."""
    messages: list[str] = []
    code = "import os; os.sched_setaffinity(0, [0])\nprint(flush=True)\nwhile True: pass"
    with (
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other,
        live_system(server, tmp_path, say=messages.append) as system,
    ):
        try:
            assert other.stdout.readline()
            with system.offer([20], 3.0) as load:
                seen = load.until(3.0)
            # other processes use less CPU time than the limit
            assert system.wait_until_idle(1.0) and not messages
            with ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(system.wait_until_idle, 0.3)
                wait_until(lambda: messages, 30)
                assert not waiting.done()
                other.kill()
        finally:
            other.kill()
    assert seen.other_cpu_share > 0.5 and re.fullmatch(r".+ \(process \d+\)", seen.other_process)
    assert re.search(r"among them .+ \(process \d+\): waiting until this load ends", messages[0])


# A server that stops responding within a window


@contextmanager
def live_system(
    server: RunningServer,
    folder: Path,
    longest_sla_s: float = 0.1,
    timeout_s: float = 10,
    say: Callable[[str], None] = print,
):
    with (
        Client("tiny", route(server, inline(BATCHES), timeout_s=timeout_s), [0]) as client,
        RequestsWriter(folder / "requests.parquet") as writer,
    ):
        yield of_one_client(server, client, writer, longest_sla_s=longest_sla_s, say=say)


def test_a_stopped_server_ends_the_window_within_seconds(server, tmp_path):
    with live_system(server, tmp_path) as system:
        with (
            pytest.raises(ServerError, match=r"process is stopped \(SIGSTOP\?\)"),
            system.offer([50], 60.0) as load,
        ):
            load.until(0.5)
            os.kill(server.pid, signal.SIGSTOP)
            stopped_s = time.monotonic()
            load.until(60.0)
        assert 5 < time.monotonic() - stopped_s < 15
        assert server.alive()


def test_a_server_that_hangs_ends_the_window_too(tmp_path, backends):
    repository = write_repository(tmp_path, execute_s=30)
    with (
        embedded_triton(repository, tmp_path / "log", [0], backends=backends) as server,
        live_system(server, tmp_path) as system,
        pytest.raises(ServerError, match=r"answered no request for [567] s"),
        system.offer([50], 60.0) as load,
    ):
        load.until(60.0)


def test_a_server_that_is_offered_twice_what_it_carries_is_late_and_not_silent(tmp_path, backends):
    """Most requests time out. The server must finish these requests before the next window."""
    repository = write_repository(tmp_path, execute_s=0.1)
    with (
        embedded_triton(repository, tmp_path / "log", [0], backends=backends) as server,
        live_system(server, tmp_path, timeout_s=1.5) as system,
    ):
        with system.offer([20], 11.0) as load:
            seen = load.until(11.0)
        assert np.mean(seen.requests[0].status == Status.TIMEOUT) > 0.5
        with system.offer([4], 2.0) as load:
            (requests,) = load.until(2.0).requests
        latency_ms = requests.latency_ms(time.monotonic_ns())
        assert 100 < np.median(latency_ms) < 300


def test_a_brief_stop_shows_in_the_latencies(server, tmp_path):
    with (
        live_system(server, tmp_path, longest_sla_s=2.0) as system,
        system.offer([50], 3.0) as load,
    ):
        load.until(0.5)
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(server.pid, signal.SIGCONT)
        seen = load.until(3.0)
        (requests,) = seen.requests
        assert 1000 < requests.latency_ms(seen.now_ns).max() < 3000


LOADED = """
import signal, sys
from pathlib import Path
from e2e.test_load import live_system
from perseus.host.signals import terminate_as_exit
from perseus.serving.launchers.embedded import embedded_triton

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
repository, backends, folder = map(Path, sys.argv[1:])
with (
    terminate_as_exit(),
    embedded_triton(repository, folder / "log", [0], backends=backends) as server,
    live_system(server, folder) as system,
    system.offer([50], 60.0) as load,
):
    load.until(0.5)
    print("loaded", flush=True)
    load.until(60.0)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_ends_a_job_with_its_group_is_not_taken_for_a_client_that_died(
    number, tmp_path, backends
):
    """A signal to the process group ends the job and its client. If only the client died, the job
    would measure once more."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOADED, write_repository(tmp_path), backends, tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{SCRIPTS}:{SCRIPTS.parent / 'tests'}"},
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "loaded\n"
    os.killpg(process.pid, number)
    _, output = process.communicate(timeout=20)
    assert process.returncode in (128 + number, -number), output
    assert left_behind(process.pid) == NOTHING


OWNER = """
import sys, time
from pathlib import Path
import numpy as np
import psutil
from perseus.traffic.route import shared
from perseus.traffic.transport import RequestFailedError
from perseus.serving.launchers.embedded import embedded_triton
from perseus.host.signals import terminate_as_exit

repository, backends, log = map(Path, sys.argv[1:])
batches = [np.zeros((1, 3, 8, 8), np.float32)]
with terminate_as_exit(), embedded_triton(repository, log, [0], backends=backends) as server:
    with shared(batches, server.grpc_address):
        print("ready", flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_owner_that_is_ended_leaves_no_shared_memory(number, tmp_path, backends):
    repository = write_repository(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, repository, backends, tmp_path / "owner.log"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    started = psutil.Process(process.pid).children(recursive=True)
    (server,) = (child for child in started if child.name() == "tritonserver")
    assert len(input_regions(server.pid)) == 1
    process.send_signal(number)
    process.communicate()
    assert left_behind(process.pid)["memory"] == []
    if number == signal.SIGKILL:  # the next start of a server removes the leftovers
        assert wait_until(lambda: not left_behind(process.pid)["processes"], timeout_s=15)
        with embedded_triton(repository, tmp_path / "log", [0], backends=backends):
            pass
    assert left_behind(process.pid) == NOTHING
