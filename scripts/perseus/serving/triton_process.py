"""Run a tritonserver on this host: start it, wait until it is ready, and stop it."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil

from perseus.host.child_process import kill_group, start
from perseus.host.signals import signals_deferred
from perseus.serving.access import PLAIN
from perseus.serving.failures import PortTakenError, dead_model, early_exit, never_ready
from perseus.serving.triton_command import DRAIN_S, Ports, free_ports

_START_ATTEMPTS = 5
_STOP_S = DRAIN_S + 5.0
_POLL_S = 0.01
_LOOK_S = 0.25
_DEAD_S = 1.0  # within this time, Triton notices the end of a process that had started properly


@contextmanager
def serving(
    command: Callable[[Ports], Sequence[str]],
    cores: Sequence[int],
    log_path: Path,
    environment: Mapping[str, str],
    *,
    ready: Callable[[int, Ports], bool],
    ready_timeout_s: float,
    end: Callable[[subprocess.Popen[bytes]], None],
) -> Iterator[tuple[subprocess.Popen[bytes], Ports, float]]:
    """Run a server process while the context is open.

    When the server is ready, yield the process, its ports, and the time in seconds that the server
    needed to become ready. `command` returns the command line for given ports. `ready(pid, ports)`
    says whether the server is ready on these ports. If another program takes one of the ports
    before the server does, the function tries other ports. `end` stops the process if it still
    runs, and removes what the process has left behind.

    Raises ServerError if the process ends before it is ready, or is not ready within
    `ready_timeout_s` seconds.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        for attempt in range(1, _START_ATTEMPTS + 1):
            ports = free_ports()
            start_s = time.monotonic()
            with signals_deferred():
                process = start(command(ports), cores, log_path, environment)
            try:
                _wait_until_ready(
                    process, partial(ready, process.pid, ports), ready_timeout_s, log_path
                )
                break
            except PortTakenError:
                if attempt == _START_ATTEMPTS:
                    raise
                end(process)
        assert process is not None
        yield process, ports, time.monotonic() - start_s
    finally:
        with signals_deferred():
            if process is not None:
                end(process)


def _wait_until_ready(
    process: subprocess.Popen[bytes],
    ready: Callable[[], bool],
    timeout_s: float,
    log_path: Path,
) -> None:
    looked_s = time.monotonic()
    deadline = looked_s + timeout_s
    ended_s: dict[int, float] = {}
    while not ready():
        if process.poll() is not None:
            raise early_exit(process.returncode, log_path)
        now_s = time.monotonic()
        if now_s - looked_s > _LOOK_S:
            looked_s = now_s
            ended_s = {pid: ended_s.get(pid, now_s) for pid in _ended_children(process.pid)}
            if any(now_s - since_s > _DEAD_S for since_s in ended_s.values()):
                raise dead_model(log_path)
        if now_s > deadline:
            raise never_ready(timeout_s, log_path)
        time.sleep(_POLL_S)


def _ended_children(pid: int) -> list[int]:
    """Return the ids of the server's child processes (processes of models) that have ended.

    If the process of a model ends before it has reported its start, for example because a library
    is missing, Triton waits for the process forever. Therefore Perseus itself must detect this end.
    """
    found = []
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process(pid).children():
            with contextlib.suppress(psutil.Error):
                if child.status() == psutil.STATUS_ZOMBIE:
                    found.append(child.pid)
    return found


def models_ready(http_port: int) -> bool:
    """Return whether the server on the port `http_port` reports that all its models are ready."""
    return _get(http_port, "/v2/health/ready") is not None


def answers_to(name: str, http_port: int) -> bool:
    """Return whether the server on the port `http_port` reports the name `name`."""
    try:
        return json.loads(_get(http_port, "/v2") or "{}").get("name") == name
    except (ValueError, AttributeError):  # another program responds on this port
        return False


def _get(http_port: int, path: str) -> bytes | None:
    try:
        return PLAIN.get(f"http://127.0.0.1:{http_port}{path}", 2.0)
    except OSError:
        return None


def local_ports(pid: int, status: str) -> set[int]:
    """Return the local ports of those TCP connections of a process whose status is `status`, for
    example LISTEN."""
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return set()
    return {each.laddr.port for each in connections if each.status == status}


def find_server(root: int, name: str) -> int | None:
    """Return the process id of the tritonserver with the name `name`.

    The server is the process `root` or one of its descendants. The result is None if this host does
    not show the process, for example because the server runs in a virtual machine.
    """
    mark = f"--id={name}"
    found = None
    with contextlib.suppress(psutil.Error):
        first = psutil.Process(root)
        # The programs that start the server also have the argument `mark`. The server is the last
        # process in the list.
        for process in (first, *first.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                if mark in process.cmdline():
                    found = process.pid
    return found


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the server: let the server finish its requests, and then kill its process group.

    The function kills the group as soon as no client is connected. Otherwise Triton would first
    unload its models. To unload them, Triton needs 1.2 s per model instance, and up to 1 s more.
    The server's log does not show when all requests have ended: the log may report no requests in
    flight although a Python backend still executes requests.
    """
    if process.poll() is not None:
        return
    process.terminate()
    process.send_signal(signal.SIGCONT)  # a suspended process cannot react to SIGTERM
    deadline = time.monotonic() + _STOP_S
    while process.poll() is None and time.monotonic() < deadline:
        if not local_ports(process.pid, psutil.CONN_ESTABLISHED):
            break
        time.sleep(_POLL_S)
    kill_group(process)
