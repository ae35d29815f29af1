"""The launchers `docker`, `podman` and `apptainer`: Triton in a container of NVIDIA's.

A container has the host's network, and every address of the server's is of the loopback. Docker and
podman name it after the process that owns it; leaving the context stops and removes it by name. If
the measuring process is killed, the kernel sends SIGTERM to the engine's program, which passes it
on; what is left even then is swept by the next start. Apptainer's server is a child process.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import psutil

from perseus.container_commands import (
    MODELS,
    STOP_S,
    Container,
    apptainer_environment,
    apptainer_exec,
    run,
)
from perseus.leftovers import (
    make_folder,
    names_of_dead_owners,
    remove,
    sweep_dead_owners,
    unique_name,
)
from perseus.running_server import RunningServer
from perseus.server import BACKENDS
from perseus.server_failures import ServerError, last_lines
from perseus.signals import signals_deferred
from perseus.triton_process import (
    Ports,
    answers_to,
    arguments,
    check_served,
    find_server,
    kill_group,
    launch,
    models_ready,
    serving,
)

Say = Callable[[str], None]
READY_S = 300.0
PULL_S = 3600.0
_COMMAND_S = 60.0
_SHM_MIB = 16
_SAY_EVERY_S = 30.0
_GRACE_S = 2.0
_REMOVE_S = 30.0


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
    engine = _find(program)
    _sweep(engine)
    _have_image(engine, image, log_path, say)
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
        yield ports.running(_pinned(_container_pid(engine, name), name, cores))


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
    engine = _find("apptainer")
    image = _apptainer_image(engine, image, log_path, say)
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
            yield ports.running(_pinned(process.pid, name, cores))
    finally:
        with signals_deferred():
            remove(folder)


def _serves(name: str, _pid: int, ports: Ports) -> bool:
    # An answer alone could be another server's: it must be to the name of this one.
    return answers_to(name, ports.http) and models_ready(ports.http)


# --- the engine and its image ---------------------------------------------------------------------


def _find(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise ServerError(
            f"the launcher {program!r} needs the program {program}, which is not on the PATH. "
            "Install it on the machine that measures, or choose another launcher."
        )
    return path


def _call(engine: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Ask the engine something short. Raises ServerError when it does not answer."""
    try:
        return subprocess.run(
            [engine, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMMAND_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerError(
            f"{Path(engine).name} does not answer ({error}). Does its daemon run well?"
        ) from error


def _sweep(engine: str) -> None:
    """Remove the containers whose measuring process is gone."""
    listed = _call(engine, "ps", "--all", "--filter=name=perseus-triton-", "--format={{.Names}}")
    if listed.returncode != 0:
        raise ServerError(
            f"{Path(engine).name} cannot be used here: {_last_line(listed.stderr)}\n"
            "Is its daemon running (systemctl start docker), and may this user use it (group "
            "docker)? podman and apptainer need no daemon."
        )
    for name in names_of_dead_owners(listed.stdout.split()):
        _remove(engine, name)


def _have_image(engine: str, image: str, log_path: Path, say: Say) -> None:
    """Pull the image unless it is there."""
    if _call(engine, "image", "inspect", "--format={{.Id}}", image).returncode != 0:
        say(f"pulling {image}; at most {PULL_S / 60:.0f} min, progress in {log_path}")
        _prepare([engine, "pull", image], image, log_path, say)


def _apptainer_image(engine: str, image: str, log_path: Path, say: Say) -> str:
    """The image as apptainer takes it; one that is not a file is pulled into its cache."""
    if "://" not in image:
        path = Path(image).resolve()
        if not path.exists():
            raise ServerError(
                f"there is no image {path}. Make it with 'apptainer pull {path.name} "
                "docker://nvcr.io/nvidia/tritonserver:<YY.MM>-py3', or give that URI as image."
            )
        return str(path)
    say(f"preparing {image}; at most {PULL_S / 60:.0f} min, progress in {log_path}")
    _prepare([engine, "exec", "--cleanenv", "--no-home", image, "true"], image, log_path, say)
    return image


def _prepare(command: list[str], image: str, log_path: Path, say: Say) -> None:
    """Run what fetches an image, and say how it goes. Raises ServerError when it fails."""
    program = Path(command[0]).name
    process = None
    start_s = said_s = time.monotonic()
    try:
        with signals_deferred():
            process = launch(command, sorted(os.sched_getaffinity(0)), log_path, os.environ)
        while process.poll() is None:
            time.sleep(0.05)
            now_s = time.monotonic()
            if now_s - start_s > PULL_S:
                raise ServerError(
                    f"{program} did not get the image {image} within {PULL_S / 60:.0f} min; the "
                    f"end of {log_path}:\n{last_lines(log_path)}\nPull it before the study."
                )
            if now_s - said_s > _SAY_EVERY_S:
                say(f"still pulling: {_last_line(log_path.read_text(errors='replace'))}")
                said_s = now_s
        if process.returncode != 0:
            raise ServerError(
                f"{program} has no image {image} and cannot pull it:\n{last_lines(log_path)}\n"
                "Is the name right, is this machine online, and is it logged in to the registry? "
                "An image can also be carried here as a file."
            )
    finally:
        with signals_deferred():
            if process is not None:
                kill_group(process)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["(it says nothing)"])[-1]


# --- the process ----------------------------------------------------------------------------------


def _container_pid(engine: str, name: str) -> int | None:
    """Process id of the container's first process, None if the engine does not tell."""
    asked = _call(engine, "inspect", "--format={{.State.Pid}}", name)
    pid = asked.stdout.strip()
    return int(pid) if asked.returncode == 0 and pid.isdigit() and pid != "0" else None


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


# --- stop -----------------------------------------------------------------------------------------


def _end(engine: str, name: str, process: subprocess.Popen[bytes]) -> None:
    """Stop and remove a container, whatever state it is in."""
    with contextlib.suppress(ServerError):  # the removal will say it
        _call(engine, "stop", "-t", str(STOP_S), name)
    # Its program before the removal: it could still be about to make the container.
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    kill_group(process)
    _remove(engine, name)


def _remove(engine: str, name: str) -> None:
    """Raises ServerError when the container is still there afterwards."""
    deadline = time.monotonic() + _REMOVE_S
    while True:
        removed = _call(engine, "rm", "--force", "--volumes", name)
        if removed.returncode == 0 or _call(engine, "inspect", name).returncode != 0:
            return
        if time.monotonic() > deadline:  # until then the engine may be at it, because of --rm
            raise ServerError(
                f"{Path(engine).name} cannot remove the container {name}: "
                f"{_last_line(removed.stderr)}. Remove it by hand before you measure again."
            )
        time.sleep(0.2)


def _stop_child(name: str, process: subprocess.Popen[bytes]) -> None:
    """End apptainer's server: the server first, so that the program can clean up after it."""
    server = find_server(process.pid, name)
    with contextlib.suppress(psutil.Error):
        for pid in filter(None, (server, process.pid if process.poll() is None else None)):
            psutil.Process(pid).terminate()
            psutil.Process(pid).resume()  # one that was stopped could not obey
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    kill_group(process)
