"""Run Triton in NVIDIA's container, for the launchers `docker` and `podman`.

A container uses the host's network, and the server listens only on the loopback address. When the
context closes, Perseus stops and removes the container. If the measuring process is killed, the
kernel sends SIGTERM to the engine's program, which forwards the signal to the container. If the
container still remains, Perseus removes it before the next start of a server. The name of each
container identifies its measuring process, so Perseus finds the containers of ended processes.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import psutil

from perseus.host.child_process import kill_group
from perseus.host.gpu import visible
from perseus.host.orphans import unique_name
from perseus.serving.container_commands import MODELS, STOP_S, Container, Contents, Engine, run
from perseus.serving.container_engine import (
    call,
    container_pid,
    find_engine,
    have_image,
    remove_container,
    sweep_containers,
)
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.serving.triton_command import BACKENDS, SHM_MIB, Ports, arguments, check_served
from perseus.serving.triton_process import answers_to, find_server, models_ready, serving
from perseus.study.runtimes import RUNTIMES
from perseus.study.tasks.measure import MeasuredServer

READY_S = 300.0
_GRACE_S = 2.0


def serve_in_engine(
    engine: Engine,
    server: MeasuredServer,
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    *,
    say: Callable[[str], None],
    rate_limited_cores: int = 0,
) -> AbstractContextManager[RunningServer]:
    """Serve a model repository in a container of `engine`.

    All other arguments have the same meaning as in `launch`.
    """
    return engine_triton(
        engine,
        contents(server),
        repository,
        log_path,
        cores,
        say=say,
        rate_limited_cores=rate_limited_cores,
    )


def contents(server: MeasuredServer) -> Contents:
    """Return the image, the backend and the GPUs of a server's container.

    Raises ServerError if the configuration names no image.
    """
    if server.image is None:
        raise ServerError(
            f"{server.name}: the launcher {server.launcher!r} needs an image: set the key `image`"
        )
    native = RUNTIMES[server.runtime].native_backend
    backend = None if native else BACKENDS / server.runtime
    return Contents(server.image, backend, visible(server.gpus))


@contextmanager
def engine_triton(
    engine: Engine,
    inside: Contents,
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    *,
    say: Callable[[str], None],
    rate_limited_cores: int = 0,
) -> Iterator[RunningServer]:
    """Serve a model repository in a container of `engine`.

    `inside` contains the image, the backend and the GPUs of the container. `say` gets a message
    about the pull of an image. All other arguments have the same meaning as in `embedded_triton`.

    Raises ServerError in the same cases as `embedded_triton`. Also raises ServerError if the
    engine's program, the engine's daemon, the image or the GPUs are missing. After an error, no
    container remains.
    """
    check_served(repository, cores)
    program = find_engine(engine.program)
    sweep_containers(program)
    image_id = have_image(program, inside.image, log_path, say)
    name = unique_name()

    def command(ports: Ports) -> list[str]:
        served = arguments(name, Path(MODELS), ports, SHM_MIB, rate_limited_cores)
        return run(engine, program, Container(name, inside, repository, cores, served))

    with serving(
        command,
        cores,
        log_path,
        os.environ,
        ready=partial(serves, name),
        ready_timeout_s=READY_S,
        end=partial(_end, program, name),
    ) as (_, ports, startup_s):
        pid = pinned(container_pid(program, name), name, cores)
        yield ports.running(pid, startup_s, image_id)


def serves(name: str, _pid: int, ports: Ports) -> bool:
    """Return whether the server with the name `name` responds on `ports` and all its models are
    ready."""
    # The response must contain the name of this server, since another server may use the port.
    return answers_to(name, ports.http) and models_ready(ports.http)


def pinned(root: int | None, name: str, cores: Sequence[int]) -> int | None:
    """Return the process id of the server `name`; None if this host does not show the process.

    The server is the process `root` or one of its descendants. Raises ServerError if the server may
    use cores that are not in `cores`.
    """
    pid = None if root is None else find_server(root, name)
    with contextlib.suppress(psutil.Error):
        if pid is not None and not set(psutil.Process(pid).cpu_affinity()) <= set(cores):
            raise ServerError(
                f"the server in the container may use the CPUs "
                f"{psutil.Process(pid).cpu_affinity()}, not only {list(cores)}: the engine does not"
                f" pin the server to its cores. Check the engine's cgroup settings, or choose"
                f" another launcher."
            )
    return pid


def _end(engine: str, name: str, process: subprocess.Popen[bytes]) -> None:
    """Stop and remove a container, even if it has not started or has already ended."""
    with contextlib.suppress(ServerError):  # if the engine fails, `remove_container` reports it
        call(engine, "stop", "-t", str(STOP_S), name)
    # End the engine's program before the removal: the program may still create the container.
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    kill_group(process)
    remove_container(engine, name)
