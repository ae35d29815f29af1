"""Command lines of container engines, as lists of arguments.

NVIDIA's image replaces the embedded server. It has its own C++ backends for some runtimes
(`study.runtimes`), which read the repository of Perseus. For another runtime, the folder of
Perseus's Python backend is mounted over the image's, and the image must have the packages that it
imports.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perseus.serving.failures import ServerError

MODELS = "/models"
_IMAGE_BACKENDS = "/opt/tritonserver/backends"
STOP_S = 30  # longer than Triton's own limit, after which an engine kills it
_SHM_SIZE = "4g"  # largest size: the engines' 64 MB are too little for large batches


@dataclass(frozen=True)
class Contents:
    """The content of a container.

    image: an image of the engine; for apptainer a URI (docker://…) or a path. backend: folder of
    Perseus's backend, by the runtime's name; None: the image has one. gpus: ids of the visible
    GPUs, none for a CPU server.
    """

    image: str
    backend: Path | None = None
    gpus: Sequence[int | str] = ()


@dataclass(frozen=True)
class Container:
    """A tritonserver in a container.

    name: of `orphans.unique_name`, of the container too.
    arguments: of tritonserver, whose repository is at MODELS.
    """

    name: str
    inside: Contents
    repository: Path
    cores: Sequence[int]
    arguments: Sequence[str]


@dataclass(frozen=True)
class Engine:
    """A program with docker's command line, and its differences.

    gpu_options: options for the GPUs with these ids. user_options: options beside --user, which
    give the container the ids of the measuring user.
    """

    program: str
    gpu_options: Callable[[Sequence[int | str]], list[str]]
    user_options: Callable[[], list[str]] = list


def run(engine: Engine, path: str, of: Container) -> list[str]:
    """Return the command `docker run` or similar, in the foreground; `path` is the path of the
    program.

    Raises ServerError for a path that an engine's --mount cannot express.
    """
    return [
        path,
        "run",
        "--rm",
        "--pull=never",  # an earlier step pulls, with a message and a time limit
        f"--name={of.name}",
        "--network=host",  # all addresses of the server are on the loopback
        f"--cpuset-cpus={','.join(map(str, of.cores))}",
        f"--shm-size={_SHM_SIZE}",
        f"--stop-timeout={STOP_S}",
        *engine.user_options(),
        f"--user={os.getuid()}:{os.getgid()}",  # can read the repository, and inspect the server
        "--cap-drop=all",
        "--security-opt=no-new-privileges",
        "--security-opt=label=disable",  # SELinux: the mounts keep their labels
        *mounts(of),
        *(engine.gpu_options(of.inside.gpus) if of.inside.gpus else []),
        of.inside.image,
        "tritonserver",
        *of.arguments,
    ]


def mounts(of: Container) -> list[str]:
    """Yield arguments for read-only mounts. Raises ServerError for a path that --mount cannot
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
