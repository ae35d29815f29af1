"""The launchers `docker`, `podman` and `apptainer`: Triton in a container of NVIDIA's.

A container has the host's network, and every address of the server's is of the loopback. Docker and
podman name it after the process that owns it; leaving the context stops and removes it by name. If
the measuring process is killed, the kernel sends SIGTERM to the engine's program, which passes it
on; what is left even then is swept by the next start. Apptainer's server is a child process.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil

from perseus.host.orphans import (
    make_folder,
    remove,
    sweep_dead_owners,
    unique_name,
    unlink_memory,
)
from perseus.host.signals import signals_deferred
from perseus.serving.container_commands import (
    MODELS,
    STOP_S,
    Container,
    apptainer_environment,
    apptainer_exec,
    run,
)
from perseus.serving.container_engine import (
    Say,
    apptainer_image,
    call,
    container_pid,
    find_engine,
    have_image,
    remove_container,
    sweep_containers,
)
from perseus.serving.embedded import BACKENDS
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.serving.triton_process import (
    Ports,
    answers_to,
    arguments,
    check_served,
    find_server,
    kill_group,
    models_ready,
    serving,
)

READY_S = 300.0
_SHM_MIB = 16
_GRACE_S = 2.0


@contextmanager
def engine_triton(
    program: str,
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    *,
    image: str,
    runtime: str,
    say: Say,
    gpus: Sequence[int | str] = (),
    rate_limited_cores: int = 0,
    backends: Path = BACKENDS,
    ready_timeout_s: float = READY_S,
) -> Iterator[RunningServer]:
    """Serve a model repository in a container of docker or podman (`program`).

    The arguments are those of `server.embedded_triton`, and: `image`, which is pulled if it is not
    there, `runtime` of the models, `gpus` that it sees, and `say`, which hears of a pull.

    Raises ServerError when the program, its daemon, the image or the GPUs are missing, and for the
    reasons that `embedded_triton` has. No container stays behind then.
    """
    check_served(repository, cores)
    engine = find_engine(program)
    sweep_containers(engine)
    have_image(engine, image, log_path, say)
    name = unique_name()

    def command(ports: Ports) -> list[str]:
        served = arguments(name, Path(MODELS), ports, _SHM_MIB, rate_limited_cores)
        return run(
            engine, Container(name, image, runtime, repository, backends, cores, gpus, served)
        )

    with serving(
        command,
        cores,
        log_path,
        os.environ,
        ready=partial(_serves, name),
        ready_timeout_s=ready_timeout_s,
        end=partial(_end, engine, name),
    ) as (_, ports):
        yield ports.running(_pinned(container_pid(engine, name), name, cores))


@contextmanager
def apptainer_triton(
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    *,
    image: str,
    runtime: str,
    say: Say,
    gpus: Sequence[int | str] = (),
    rate_limited_cores: int = 0,
    backends: Path = BACKENDS,
    ready_timeout_s: float = READY_S,
) -> Iterator[RunningServer]:
    """Serve a model repository in a container of apptainer; `image` is a URI or a path.

    The other arguments and the errors are those of `engine_triton`.
    """
    check_served(repository, cores)
    engine = find_engine("apptainer")
    image = apptainer_image(engine, image, log_path, say)
    sweep_dead_owners()
    with signals_deferred():
        folder = make_folder()  # marks what the server leaves; nothing is in it
    name = folder.name

    def command(ports: Ports) -> list[str]:
        served = arguments(name, Path(MODELS), ports, _SHM_MIB, rate_limited_cores)
        return apptainer_exec(
            engine, Container(name, image, runtime, repository, backends, cores, gpus, served)
        )

    try:
        with serving(
            command,
            cores,
            log_path,
            apptainer_environment(os.environ, gpus),
            ready=partial(_serves, name),
            ready_timeout_s=ready_timeout_s,
            end=partial(_stop_child, name),
        ) as (process, ports):
            unlink_memory(name)
            yield ports.running(_pinned(process.pid, name, cores))
    finally:
        with signals_deferred():
            remove(folder)


def _serves(name: str, _pid: int, ports: Ports) -> bool:
    # An answer alone could be another server's: it must be to the name of this one.
    return answers_to(name, ports.http) and models_ready(ports.http)


def _pinned(root: int | None, name: str, cores: Sequence[int]) -> int | None:
    """The server's process id, if it can be seen from here, after a look at its cores."""
    pid = None if root is None else find_server(root, name)
    with contextlib.suppress(psutil.Error):
        if pid is not None and not set(psutil.Process(pid).cpu_affinity()) <= set(cores):
            raise ServerError(
                f"the container's server may use CPUs {psutil.Process(pid).cpu_affinity()}, not "
                f"only {list(cores)}: the engine does not pin it. Look at its cgroup settings, or "
                "choose another launcher."
            )
    return pid


def _end(engine: str, name: str, process: subprocess.Popen[bytes]) -> None:
    """Stop and remove a container, whatever state it is in."""
    with contextlib.suppress(ServerError):  # the removal will say it
        call(engine, "stop", "-t", str(STOP_S), name)
    # Its program before the removal: it could still be about to make the container.
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    kill_group(process)
    remove_container(engine, name)


def _stop_child(name: str, process: subprocess.Popen[bytes]) -> None:
    """End apptainer's server: the server first, so that the program can clean up after it."""
    if process.poll() is None:
        with contextlib.suppress(psutil.Error):
            server = psutil.Process(find_server(process.pid, name) or process.pid)
            server.terminate()
            server.resume()  # one that was stopped could not obey
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    kill_group(process)
