"""Build command lines of container engines, as lists of arguments.

The containers run NVIDIA's Triton image. For some runtimes, the image contains C++ backends that
read the model repository of Perseus (`study.runtimes`). For all other runtimes, Perseus mounts its
own Python backend into the image's folder of backends. The image must then contain the packages
that this Python backend imports.
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
    """The image, the backend and the GPUs of a container.

    `image` is the name of an image. For apptainer, `image` is a URI (docker://…) or a path.
    `backend` is the folder of Perseus's Python backend for the runtime, or None if the image
    contains a backend for the runtime. `gpus` contains the ids of the GPUs that the container may
    use, and is empty for a server on CPUs.
    """

    image: str
    backend: Path | None = None
    gpus: Sequence[int | str] = ()


@dataclass(frozen=True)
class Container:
    """A container that runs a tritonserver.

    `name` comes from `orphans.unique_name`. The server and the container have this name.
    `arguments` are the arguments of tritonserver. In these arguments, the path of the model
    repository is MODELS.
    """

    name: str
    inside: Contents
    repository: Path
    cores: Sequence[int]
    arguments: Sequence[str]


@dataclass(frozen=True)
class Engine:
    """A container engine with the command line of docker, except for the options of two functions.

    `gpu_options` returns the options with which a container may use the GPUs with the given ids.
    `user_options` returns the options that the engine needs in addition to --user, so that the
    container runs under the user and group ids of the measuring user.
    """

    program: str
    gpu_options: Callable[[Sequence[int | str]], list[str]]
    user_options: Callable[[], list[str]] = list


def run(engine: Engine, path: str, of: Container) -> list[str]:
    """Return the command that runs a container in the foreground, such as `docker run`.

    `path` is the path of the engine's program. Raises ServerError if the option --mount cannot
    express a path that the container needs.
    """
    return [
        path,
        "run",
        "--rm",
        "--pull=never",  # Perseus has already pulled the image, with a message and a time limit
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
    """Return the options that mount the model repository and the backend read-only.

    Raises ServerError if the option --mount cannot express one of these paths.
    """
    found = [_mount(of.repository, MODELS)]
    if of.inside.backend is not None:
        found.append(_mount(of.inside.backend, f"{_IMAGE_BACKENDS}/{of.inside.backend.name}"))
    return found


def _mount(source: Path, target: str) -> str:
    path = str(source.resolve())
    if set(path) & set(',"\n'):
        raise ServerError(
            f"{path!r} cannot be mounted into a container: the path contains a comma, a quotation "
            "mark or a line break. Run the study from another folder."
        )
    return f"--mount=type=bind,source={path},target={target},readonly"
