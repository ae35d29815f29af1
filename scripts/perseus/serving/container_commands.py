"""Build command lines of container engines, as lists of arguments.

A container of NVIDIA's image replaces the embedded server (of nvidia-pytriton). For some runtimes,
the image contains C++ backends that read the repository of Perseus (`study.runtimes`). For all
other runtimes, Perseus mounts the folder of its Python backend into the image's folder of backends.
For these other runtimes, the image must contain the packages that the Python backend imports.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perseus.serving.failures import ServerError

MODELS = "/models"
_IMAGE_BACKENDS = "/opt/tritonserver/backends"
STOP_S = 30  # seconds until an engine kills Triton; Triton's own time limit is shorter
_SHM_SIZE = "4g"  # size of /dev/shm: the engines' default of 64 MB is too small for large batches


@dataclass(frozen=True)
class Contents:
    """The content of a container.

    `image` is the name of an image. For apptainer, `image` is a URI (docker://…) or a path.
    `backend` is the folder of Perseus's backend for the runtime, None if the image contains a
    backend. `gpus` contains the ids of the visible GPUs, none for a CPU server.
    """

    image: str
    backend: Path | None = None
    gpus: Sequence[int | str] = ()


@dataclass(frozen=True)
class Container:
    """A container that runs a tritonserver.

    `name` is a name from `orphans.unique_name`, for the server and the container. `arguments` are
    the arguments of tritonserver, whose repository is at MODELS.
    """

    name: str
    inside: Contents
    repository: Path
    cores: Sequence[int]
    arguments: Sequence[str]


@dataclass(frozen=True)
class Engine:
    """A container engine with docker's command line, and its differences from docker.

    `gpu_options` returns the options that let a container use the GPUs with the given ids.
    `user_options` returns the options that the engine needs besides --user to run the container
    under the ids of the measuring user.
    """

    program: str
    gpu_options: Callable[[Sequence[int | str]], list[str]]
    user_options: Callable[[], list[str]] = list


def run(engine: Engine, path: str, of: Container) -> list[str]:
    """Return the command that runs a container in the foreground: `docker run`, or the same command
    of another engine.

    `path` is the path of the program. Raises ServerError for a path that an engine's --mount cannot
    express.
    """
    return [
        path,
        "run",
        "--rm",
        "--pull=never",  # an earlier step pulls the image, with a message and a time limit
        f"--name={of.name}",
        "--network=host",  # the server listens only on the loopback address
        f"--cpuset-cpus={','.join(map(str, of.cores))}",
        f"--shm-size={_SHM_SIZE}",
        f"--stop-timeout={STOP_S}",
        *engine.user_options(),
        # As the measuring user, the server can read the repository, and Perseus can inspect the
        # server.
        f"--user={os.getuid()}:{os.getgid()}",
        "--cap-drop=all",
        "--security-opt=no-new-privileges",
        "--security-opt=label=disable",  # with SELinux, the mounted folders keep their labels
        *mounts(of),
        *(engine.gpu_options(of.inside.gpus) if of.inside.gpus else []),
        of.inside.image,
        "tritonserver",
        *of.arguments,
    ]


def mounts(of: Container) -> list[str]:
    """Return the arguments for read-only mounts. Raises ServerError for a path that --mount cannot
    express."""
    found = [_mount(of.repository, MODELS)]
    if of.inside.backend is not None:
        found.append(_mount(of.inside.backend, f"{_IMAGE_BACKENDS}/{of.inside.backend.name}"))
    return found


def _mount(source: Path, target: str) -> str:
    path = str(source.resolve())
    if set(path) & set(',"\n'):
        raise ServerError(
            f"{path!r} cannot be mounted into a container: its name has a comma, a quotation mark "
            "or a line break. Run the study from another folder."
        )
    return f"--mount=type=bind,source={path},target={target},readonly"
