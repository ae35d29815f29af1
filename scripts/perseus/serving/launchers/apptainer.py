"""Run NVIDIA's Triton container with apptainer, as a child of the measuring process."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil

from perseus.host.child_process import kill_group
from perseus.host.orphans import make_folder, remove, sweep_dead_owners, unlink_memory
from perseus.host.signals import signals_deferred
from perseus.serving.container_commands import (
    MODELS,
    STOP_S,
    Container,
    Contents,
    mounts,
)
from perseus.serving.container_engine import apptainer_image, find_engine
from perseus.serving.containers import READY_S, contents, pinned, serves
from perseus.serving.running_server import RunningServer
from perseus.serving.triton_command import SHM_MIB, Ports, arguments, check_served
from perseus.serving.triton_process import find_server, serving
from perseus.study.tasks.measure import MeasuredServer


def serve(
    server: MeasuredServer,
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    *,
    say: Callable[[str], None],
    rate_limited_cores: int = 0,
) -> AbstractContextManager[RunningServer]:
    """Serve a model repository in a container of apptainer. The arguments are those of `launch`."""
    return apptainer_triton(
        contents(server),
        repository,
        log_path,
        cores,
        say=say,
        rate_limited_cores=rate_limited_cores,
    )


@contextmanager
def apptainer_triton(
    inside: Contents,
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    *,
    say: Callable[[str], None],
    rate_limited_cores: int = 0,
) -> Iterator[RunningServer]:
    """Serve a model repository in a container of apptainer. `inside.image` is a URI or a path.

    All other arguments have the same meaning as in `engine_triton`, and the errors are the same.
    """
    check_served(repository, cores)
    engine = find_engine("apptainer")
    inside = replace(inside, image=apptainer_image(engine, inside.image, log_path, say))
    sweep_dead_owners()
    with signals_deferred():
        folder = make_folder()  # its name marks the processes and files of the server
    name = folder.name

    def command(ports: Ports) -> list[str]:
        served = arguments(name, Path(MODELS), ports, SHM_MIB, rate_limited_cores)
        return apptainer_exec(engine, Container(name, inside, repository, cores, served))

    try:
        with serving(
            command,
            cores,
            log_path,
            apptainer_environment(os.environ, inside.gpus),
            ready=partial(serves, name),
            ready_timeout_s=READY_S,
            end=partial(_stop_child, name),
        ) as (process, ports, startup_s):
            unlink_memory(name)
            yield ports.running(pinned(process.pid, name, cores), startup_s)
    finally:
        with signals_deferred():
            remove(folder)


def apptainer_exec(engine: str, of: Container) -> list[str]:
    """Return the command line of `apptainer exec`, which runs Triton as a child process with this
    host's network and /dev/shm.

    Raises ServerError if the option --mount cannot express a path that the container needs.
    """
    return [
        engine,
        "exec",
        "--cleanenv",  # variables of the host's Python would affect the image's Python
        "--no-home",
        *(["--nv"] if of.inside.gpus else []),
        *mounts(of),
        of.inside.image,
        "tritonserver",
        *of.arguments,
    ]


def apptainer_environment(
    environment: Mapping[str, str], gpus: Sequence[int | str]
) -> dict[str, str]:
    """Return the environment variables of `apptainer exec`.

    For a server with GPUs, a variable contains the list of GPUs. (The option --env cannot pass this
    list, because it splits values at commas.)
    """
    if not gpus:
        return dict(environment)
    return {
        **environment,
        "APPTAINERENV_CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # count the GPUs as nvidia-smi does
        "APPTAINERENV_CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)),
    }


def _stop_child(name: str, process: subprocess.Popen[bytes]) -> None:
    """Stop the server. Its parent process apptainer then cleans up and ends."""
    if process.poll() is None:
        with contextlib.suppress(psutil.Error):
            server = psutil.Process(find_server(process.pid, name) or process.pid)
            server.terminate()
            server.resume()  # a suspended process cannot react to SIGTERM
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    kill_group(process)
