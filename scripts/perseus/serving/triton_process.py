"""A tritonserver on this host: its ports, its start as a child process, its readiness, its end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil

from perseus.host.logs import last_lines
from perseus.host.signals import signals_deferred
from perseus.models.repository import RESOURCE
from perseus.serving.failures import CORES_REFUSED, PortTakenError, ServerError, early_exit
from perseus.serving.running_server import RunningServer

_START_ATTEMPTS = 5
_DRAIN_S = 10  # Triton's own limit for finishing the requests that it has accepted
_STOP_S = _DRAIN_S + 5.0
_POLL_S = 0.01


class Ports(NamedTuple):
    """Ports of one server on the loopback."""

    http: int
    grpc: int
    metrics: int

    def running(self, pid: int | None) -> RunningServer:
        """The server that listens on them."""
        return RunningServer(
            grpc_address=f"127.0.0.1:{self.grpc}",
            http_address=f"127.0.0.1:{self.http}",
            metrics_url=f"http://127.0.0.1:{self.metrics}/metrics",
            pid=pid,
        )


def check_served(repository: Path, cores: Sequence[int]) -> None:
    """Raises ServerError when there is nothing to serve, or no core to serve it with."""
    if not cores:
        raise ServerError(
            "no CPU core is left for the server: it needs at least one that the client does not "
            "use. Measure on a host with two cores or more, or give the client fewer."
        )
    if not repository.is_dir():
        raise ServerError(f"{repository}: no such model repository; build it first.")


def free_ports() -> Ports:
    """Ports that were free on the loopback a moment ago."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return Ports(*(each.getsockname()[1] for each in sockets))


def arguments(
    name: str, repository: Path, ports: Ports, shm_mib: int, rate_limited_cores: int
) -> list[str]:
    """Arguments of a tritonserver that serves all of `repository`, on the loopback alone.

    name: of `leftovers.unique_name`; the server answers with it, and its shared memory bears it.
    shm_mib: shared memory per model instance in MiB, initially and per growth step.
    rate_limited_cores: cores that tenants with a priority share; 0 switches the limiter off.
    """
    shm_bytes = shm_mib * 2**20
    limits = [
        "--rate-limit=execution_count",
        f"--rate-limit-resource={RESOURCE}:{rate_limited_cores}",
    ]
    return [
        f"--id={name}",
        f"--model-repository={repository}",
        "--disable-auto-complete-config",
        # Triton appends a UUID to the prefix without a separator
        f"--backend-config=python,shm-region-prefix-name={name}-",
        f"--backend-config=python,shm-default-byte-size={shm_bytes}",
        f"--backend-config=python,shm-growth-byte-size={shm_bytes}",
        "--http-address=127.0.0.1",
        f"--http-port={ports.http}",
        "--grpc-address=127.0.0.1",
        f"--grpc-port={ports.grpc}",
        "--metrics-address=127.0.0.1",
        f"--metrics-port={ports.metrics}",
        "--metrics-interval-ms=1000",
        f"--exit-timeout-secs={_DRAIN_S}",
        *(limits if rate_limited_cores else []),
    ]


# --- start ----------------------------------------------------------------------------------------

# Runs in the child instead of a preexec_fn, which is not safe in a process with threads (gRPC's).
# PR_SET_PDEATHSIG is 1; a parent that ended before the call is noticed by the changed parent id.
_EXEC = f"""
import ctypes, os, signal, sys
parent, cores, *command = sys.argv[1:]
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(parent):
    sys.exit("the measuring process has ended")
wanted = set(map(int, cores.split(",")))
try:
    os.sched_setaffinity(0, wanted)
except OSError:
    pass
if os.sched_getaffinity(0) != wanted:
    sys.exit({CORES_REFUSED})
os.execv(command[0], command)
"""


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
) -> Iterator[tuple[subprocess.Popen[bytes], Ports]]:
    """A process that serves on the ports that its `command` was made for, started as by `launch`.

    `ready` says whether the process of this id answers on its ports; other ports are tried when
    somebody else took one of them. `end` ends a process, also one that has ended by itself, and
    what it left.

    Raises ServerError when the process ends before it is ready, or takes too long.
    """
    process: subprocess.Popen[bytes] | None = None
    try:
        for attempt in range(1, _START_ATTEMPTS + 1):
            ports = free_ports()
            with signals_deferred():
                process = launch(command(ports), cores, log_path, environment)
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
        yield process, ports
    finally:
        with signals_deferred():
            if process is not None:
                end(process)


def launch(
    command: Sequence[str], cores: Sequence[int], log_path: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, pinned, ending (SIGTERM) with this thread.

    `command` begins with a path; the output replaces the file `log_path`, whose folder is made.
    """
    log_path.parent.mkdir(parents=True, exist_ok=True)
    shim = [sys.executable, "-I", "-S", "-c", _EXEC, str(os.getpid()), ",".join(map(str, cores))]
    with log_path.open("wb") as log:
        return subprocess.Popen(
            [*shim, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def _wait_until_ready(
    process: subprocess.Popen[bytes],
    ready: Callable[[], bool],
    timeout_s: float,
    log_path: Path,
) -> None:
    """Raises ServerError: PortTakenError, if the reason was a port that somebody else holds."""
    deadline = time.monotonic() + timeout_s
    while not ready():
        if process.poll() is not None:
            raise early_exit(process.returncode, log_path)
        if time.monotonic() > deadline:
            raise ServerError(
                f"the server was not ready after {timeout_s:g} s; the end of {log_path}:\n"
                f"{last_lines(log_path)}\n"
                "A model that is still loading needs a larger ready_timeout_s or more cores."
            )
        time.sleep(_POLL_S)


def models_ready(http_port: int) -> bool:
    """Whether a server on this port says that all its models are ready."""
    return _get(http_port, "/v2/health/ready") is not None


def answers_to(name: str, http_port: int) -> bool:
    """Whether the server on this port is the one that was started with this name."""
    try:
        return json.loads(_get(http_port, "/v2") or "{}").get("name") == name
    except (ValueError, AttributeError):  # another program's answer
        return False


def _get(http_port: int, path: str) -> bytes | None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{http_port}{path}", timeout=2.0) as response:
            return response.read() if response.status == 200 else None
    except (urllib.error.URLError, http.client.HTTPException, OSError):
        return None


def local_ports(pid: int, status: str) -> set[int]:
    """Local ports of a process's TCP connections that are in a state, such as LISTEN."""
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return set()
    return {each.laddr.port for each in connections if each.status == status}


def find_server(root: int, name: str) -> int | None:
    """Id of the tritonserver of this name among `root` and its descendants.

    None when there is none that can be seen from here, as in a virtual machine or on another host.
    """
    mark = f"--id={name}"
    found = None
    with contextlib.suppress(psutil.Error):
        first = psutil.Process(root)
        # The programs that start the server carry its arguments too: the last one is the server.
        for process in (first, *first.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                if mark in process.cmdline():
                    found = process.pid
    return found


# --- stop -----------------------------------------------------------------------------------------


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the server: let it answer the clients that are connected, then kill its group.

    Triton needs 1.2 s per model instance to unload, one after the other, and up to 1 s more. That
    leaves nothing behind that anybody needs, so the group is killed as soon as no client is
    connected: nobody could receive an answer then. (The log is no guide: the server reports no
    requests in flight while a python-based backend still executes some.)
    """
    if process.poll() is not None:
        return
    process.terminate()
    process.send_signal(signal.SIGCONT)  # one that was stopped could not obey
    deadline = time.monotonic() + _STOP_S
    while process.poll() is None and time.monotonic() < deadline:
        if not local_ports(process.pid, psutil.CONN_ESTABLISHED):
            break
        time.sleep(_POLL_S)
    kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of a launched program and of its children."""
    if process.poll() is None:  # its id, and with it the group's, is still its own
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
