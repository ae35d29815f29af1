"""Command lines of container engines, as lists of arguments.

NVIDIA's image serves what the embedded server serves. It has C++ backends of its own for some
runtimes (`study.runtimes`), which read what `repository` writes; for any other the folder of our
python-based backend is mounted over the image's, and the image must have the packages that it
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
STOP_S = 30  # above Triton's own limit, after which an engine would kill it
_SHM_SIZE = "4g"  # at most: the engines' 64 MB are too little for large batches


@dataclass(frozen=True)
class Contents:
    """The content of a container.

    image: of the engine; for apptainer a URI (docker://…) or a path.
    backend: folder of our own backend, by the runtime's name; None: the image has one.
    gpus: ids of the GPUs that it sees, none for a CPU server.
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

    gpu_options: with which a container sees GPUs of these ids.
    user_options: besides --user, which makes the measuring user's ids those of the container.
    """

    program: str
    gpu_options: Callable[[Sequence[int | str]], list[str]]
    user_options: Callable[[], list[str]] = list


def run(engine: Engine, path: str, of: Container) -> list[str]:
    """`docker run` or the like, in the foreground; `path` is the path of the program.

    Raises ServerError for a path that an engine's --mount cannot hold.
    """
    return [
        path,
        "run",
        "--rm",
        "--pull=never",  # what it takes is said, and limited, before
        f"--name={of.name}",
        "--network=host",  # every address of the server's is of the loopback
        f"--cpuset-cpus={','.join(map(str, of.cores))}",
        f"--shm-size={_SHM_SIZE}",
        f"--stop-timeout={STOP_S}",
        *engine.user_options(),
        f"--user={os.getuid()}:{os.getgid()}",  # may read the repository, and be looked at
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
    """Arguments for read-only mounts. Raises ServerError for a path that --mount cannot hold."""
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
