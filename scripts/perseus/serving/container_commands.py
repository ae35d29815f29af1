"""The command lines of container engines: lists of arguments, never a shell's.

NVIDIA's image serves what the embedded server serves. Its own C++ backends read what `repository`
writes for the runtimes of NATIVE; for any other the folder of our python-based backend is mounted
over the image's, and the image must have the packages that it imports.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perseus.serving.failures import ServerError

NATIVE = {"onnxruntime", "openvino", "tensorrt"}
MODELS = "/models"
_IMAGE_BACKENDS = "/opt/tritonserver/backends"
STOP_S = 30  # above Triton's own limit, after which an engine would kill it
_SHM_SIZE = "4g"  # at most: the engines' 64 MB are too little for large batches


@dataclass(frozen=True)
class Container:
    """A tritonserver in a container.

    name: of `leftovers.unique_name`, of the container too.
    image: of the engine; for apptainer a URI (docker://…) or a path.
    arguments: of tritonserver, whose repository is at MODELS.
    gpus: ids of the GPUs that it sees, none for a CPU server.
    """

    name: str
    image: str
    runtime: str
    repository: Path
    backends: Path
    cores: Sequence[int]
    gpus: Sequence[int | str]
    arguments: Sequence[str]


def run(engine: str, of: Container) -> list[str]:
    """`docker run` or `podman run`, in the foreground; `engine` begins the list.

    Raises ServerError for a path that an engine's --mount cannot hold.
    """
    return [
        engine,
        "run",
        "--rm",
        "--pull=never",  # what it takes is said, and limited, before
        f"--name={of.name}",
        "--network=host",  # every address of the server's is of the loopback
        f"--cpuset-cpus={','.join(map(str, of.cores))}",
        f"--shm-size={_SHM_SIZE}",
        f"--stop-timeout={STOP_S}",
        *_user(engine),
        "--cap-drop=all",
        "--security-opt=no-new-privileges",
        "--security-opt=label=disable",  # SELinux: the mounts keep their labels
        *_mounts(of),
        *(_docker_gpus(of) if _program(engine) == "docker" else _podman_gpus(of)),
        of.image,
        "tritonserver",
        *of.arguments,
    ]


def apptainer_exec(engine: str, of: Container) -> list[str]:
    """`apptainer exec`: a child process with this host's network and /dev/shm.

    Raises ServerError for a path that --mount cannot hold.
    """
    return [
        engine,
        "exec",
        "--cleanenv",  # variables of the host's Python would mislead the image's
        "--no-home",
        *(["--nv"] if of.gpus else []),
        *_mounts(of),
        of.image,
        "tritonserver",
        *of.arguments,
    ]


def apptainer_environment(environment: Mapping[str, str], gpus: Sequence[int | str]) -> dict:
    """What `apptainer exec` runs with: --env would take the comma between two GPUs for its own."""
    if not gpus:
        return dict(environment)
    return {**environment, "APPTAINERENV_CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}


def _program(engine: str) -> str:
    return Path(engine).name


def _user(engine: str) -> list[str]:
    """The measuring user's own ids, so that it may read the repository and look at the server."""
    own = [f"--user={os.getuid()}:{os.getgid()}"]
    # A rootless podman's container would have other ids outside than inside.
    return ["--userns=keep-id", *own] if _program(engine) == "podman" and os.getuid() else own


def _mounts(of: Container) -> list[str]:
    mounts = [_mount(of.repository, MODELS)]
    if of.runtime not in NATIVE:
        mounts.append(_mount(of.backends / of.runtime, f"{_IMAGE_BACKENDS}/{of.runtime}"))
    return mounts


def _mount(source: Path, target: str) -> str:
    path = str(source.resolve())
    if set(path) & set(',"\n'):
        raise ServerError(
            f"{path!r} cannot be mounted into a container: its name has a comma, a quotation mark "
            "or a line break. Run the study from another folder."
        )
    return f"--mount=type=bind,source={path},target={target},readonly"


def _docker_gpus(of: Container) -> list[str]:
    if not of.gpus:
        return []
    # docker reads the value as CSV: without the quotation marks the second GPU would be an option
    devices = ",".join(map(str, of.gpus))
    return [f'--gpus="device={devices}"', "--ulimit=memlock=-1"]


def _podman_gpus(of: Container) -> list[str]:
    return [f"--device=nvidia.com/gpu={gpu}" for gpu in of.gpus]
