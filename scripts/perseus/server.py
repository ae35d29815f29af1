"""Start and stop Triton as a child of the measuring process.

A launcher is a context manager: it yields a `RunningServer` whose models all answer, and when it is
left, for whatever reason, nothing of the server stays behind. `embedded_triton` runs the server
that comes with the pip package nvidia-pytriton: no container, no root, loopback only.

    with terminate_as_exit(), embedded_triton(repository, log_path, cores=[0]) as server:
        measure(server.grpc_address)

Three nets catch what a server can leave behind. Leaving the context stops the server. If the
measuring process is killed so that it cannot do that, the kernel sends SIGTERM to the server. What
neither could remove (shared memory, a temporary folder) carries its owner in its name, and the next
start sweeps what belongs to owners that are gone.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from perseus.leftovers import make_folder, remove, sweep_dead_owners
from perseus.repository import RESOURCE
from perseus.server_failures import (
    CORES_REFUSED,
    PortTakenError,
    ServerError,
    early_exit,
    last_lines,
)
from perseus.signals import signals_deferred, terminate_as_exit
from perseus.triton_wheel import Installation, fill_backends, find_installation

__all__ = ["BACKENDS", "RunningServer", "ServerError", "embedded_triton", "terminate_as_exit"]

BACKENDS = Path(__file__).resolve().parents[1] / "backends"
"""Folder of our own python-based backends: one folder `<runtime>/model.py` each."""

_START_ATTEMPTS = 5
_DRAIN_S = 10  # Triton's own limit for finishing the requests that it has accepted
_STOP_S = _DRAIN_S + 5.0
_POLL_S = 0.01


@dataclass(frozen=True)
class RunningServer:
    """A server that is ready to serve: its addresses and its process."""

    grpc_address: str
    """`host:port` of the gRPC endpoint."""
    http_address: str
    """`host:port` of the HTTP endpoint."""
    metrics_url: str
    """URL of the Prometheus metrics."""
    pid: int
    """Process id of the server itself."""

    def alive(self) -> bool:
        """Whether the server's own process still runs."""
        try:
            return psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def stopped(self) -> bool:
        """Whether a signal has stopped the server's own process."""
        try:
            return psutil.Process(self.pid).status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    def pids(self) -> list[int]:
        """Ids of the server and of its stub processes; empty once the server has ended."""
        try:
            server = psutil.Process(self.pid)
            if server.status() == psutil.STATUS_ZOMBIE:
                return []
            return [self.pid, *(child.pid for child in server.children(recursive=True))]
        except psutil.NoSuchProcess:
            return []


@contextmanager
def embedded_triton(
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    ready_timeout_s: float = 120.0,
    *,
    backends: Path = BACKENDS,
    shm_mib: int = 16,
    rate_limited_cores: int = 0,
) -> Iterator[RunningServer]:
    """Serve a model repository with the tritonserver of nvidia-pytriton while the context is open.

    Enter it from a thread that lives as long as the context does (the main thread, say): the kernel
    ends the server together with the *thread* that started it. Close clients before you leave it:
    the server is then ended at once, else only after it has answered and unloaded (seconds).

    Args:
        repository: Triton model repository; every model in it is loaded.
        log_path: file for the server's output; overwritten, its folder is made.
        cores: CPU ids that the server and its stubs may use.
        ready_timeout_s: seconds until all models must be ready.
        backends: folder of python-based backends, `<name>/model.py` each.
        shm_mib: shared memory per model instance in MiB, initially and per growth step, at least 4.
        rate_limited_cores: cores that tenants with a priority share by Triton's rate limiter; 0
            switches it off.

    Raises:
        ServerError: no or an unsuitable installation, cores that are not available, a server that
            ends early, a model that does not load, or a time-out. Nothing stays behind then.
    """
    _check_arguments(repository, cores, backends, shm_mib)
    installation = find_installation()
    sweep_dead_owners()
    with signals_deferred():
        folder = make_folder()
    process: subprocess.Popen[bytes] | None = None
    try:
        fill_backends(folder, installation, backends)
        for attempt in range(1, _START_ATTEMPTS + 1):
            ports = _free_ports()
            arguments = _arguments(installation, folder, repository, ports, shm_mib)
            if rate_limited_cores:
                arguments += [
                    "--rate-limit=execution_count",
                    f"--rate-limit-resource={RESOURCE}:{rate_limited_cores}",
                ]
            with signals_deferred():
                process = _launch(installation, arguments, cores, log_path)
            try:
                _wait_until_ready(process, ports, ready_timeout_s, log_path)
                break
            except PortTakenError:  # that server has ended; try other ports
                if attempt == _START_ATTEMPTS:
                    raise
        assert process is not None
        http_port, grpc_port, metrics_port = ports
        yield RunningServer(
            grpc_address=f"127.0.0.1:{grpc_port}",
            http_address=f"127.0.0.1:{http_port}",
            metrics_url=f"http://127.0.0.1:{metrics_port}/metrics",
            pid=process.pid,
        )
    finally:
        with signals_deferred():
            if process is not None:
                _stop(process)
            remove(folder)


# --- preparation ----------------------------------------------------------------------------------


def _check_arguments(repository: Path, cores: Sequence[int], backends: Path, shm_mib: int) -> None:
    if not cores:
        raise ServerError(
            "no CPU core is left for the server: it needs at least one that the client does not "
            "use. Measure on a host with two cores or more, or give the client fewer."
        )
    if not repository.is_dir():
        raise ServerError(f"{repository}: no such model repository; build it first.")
    if not backends.is_dir():
        raise ServerError(f"{backends}: no such folder of python-based backends.")
    if shm_mib < 4:
        raise ServerError(f"shm_mib is {shm_mib}, but a model instance needs at least 4 MiB.")


def _free_ports() -> tuple[int, int, int]:
    """Three ports that were free on the loopback a moment ago: http, gRPC, metrics."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        http_port, grpc_port, metrics_port = (each.getsockname()[1] for each in sockets)
    return http_port, grpc_port, metrics_port


def _arguments(
    installation: Installation,
    folder: Path,
    repository: Path,
    ports: tuple[int, int, int],
    shm_mib: int,
) -> list[str]:
    http_port, grpc_port, metrics_port = ports
    shm_bytes = shm_mib * 2**20
    return [
        str(installation.binary),
        f"--model-repository={repository.resolve()}",
        f"--backend-directory={folder / 'backends'}",
        "--disable-auto-complete-config",
        # Triton appends a UUID to the prefix without a separator
        f"--backend-config=python,shm-region-prefix-name={folder.name}-",
        f"--backend-config=python,shm-default-byte-size={shm_bytes}",
        f"--backend-config=python,shm-growth-byte-size={shm_bytes}",
        "--http-address=127.0.0.1",
        f"--http-port={http_port}",
        "--grpc-address=127.0.0.1",
        f"--grpc-port={grpc_port}",
        "--metrics-address=127.0.0.1",
        f"--metrics-port={metrics_port}",
        "--metrics-interval-ms=1000",
        f"--exit-timeout-secs={_DRAIN_S}",
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


def _launch(
    installation: Installation, arguments: list[str], cores: Sequence[int], log_path: Path
) -> subprocess.Popen[bytes]:
    """Start the server in a session of its own, pinned, ending with this thread."""
    log_path.parent.mkdir(parents=True, exist_ok=True)
    libraries = [str(installation.libraries), sysconfig.get_config_var("LIBDIR")]
    # The stub takes its packages from the first python3 on PATH: that must be this environment.
    search = [str(Path(sys.executable).parent)]
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": _joined(libraries, os.environ.get("LD_LIBRARY_PATH")),
        "PATH": _joined(search, os.environ.get("PATH")),
    }
    shim = [sys.executable, "-I", "-S", "-c", _EXEC, str(os.getpid()), ",".join(map(str, cores))]
    with log_path.open("wb") as log:
        return subprocess.Popen(
            [*shim, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def _joined(first: list[str], rest: str | None) -> str:
    return os.pathsep.join([*first, rest] if rest else first)


def _wait_until_ready(
    process: subprocess.Popen[bytes],
    ports: tuple[int, int, int],
    timeout_s: float,
    log_path: Path,
) -> None:
    deadline = time.monotonic() + timeout_s
    # An answer alone could be another server's: the ports must be held by this one.
    while not (
        _models_ready(ports[0]) and _ports(process.pid, psutil.CONN_LISTEN).issuperset(ports)
    ):
        if process.poll() is not None:
            raise early_exit(process.returncode, log_path)
        if time.monotonic() > deadline:
            raise ServerError(
                f"the server was not ready after {timeout_s:g} s; the end of {log_path}:\n"
                f"{last_lines(log_path)}\n"
                "A model that is still loading needs a larger ready_timeout_s or more cores."
            )
        time.sleep(_POLL_S)


def _ports(pid: int, status: str) -> set[int]:
    """Local ports of a process's TCP connections that are in a state, such as LISTEN."""
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return set()
    return {each.laddr.port for each in connections if each.status == status}


def _models_ready(http_port: int) -> bool:
    url = f"http://127.0.0.1:{http_port}/v2/health/ready"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2.0) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, http.client.HTTPException, OSError):
        return False


# --- stop -----------------------------------------------------------------------------------------


def _stop(process: subprocess.Popen[bytes]) -> None:
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
        if not _ports(process.pid, psutil.CONN_ESTABLISHED):
            break
        time.sleep(_POLL_S)
    if process.poll() is None:  # its id, and with it the group's, is still its own
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
