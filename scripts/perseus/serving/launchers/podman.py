"""The launcher `podman`: a container of NVIDIA's Triton, without a daemon."""

import os
from collections.abc import Sequence
from functools import partial

from perseus.serving.container_commands import Engine
from perseus.serving.containers import serve_in_engine


def gpu_options(gpus: Sequence[int | str]) -> list[str]:
    """Options for GPUs, by the Container Device Interface."""
    return [f"--device=nvidia.com/gpu={gpu}" for gpu in gpus]


def user_options() -> list[str]:
    """Options that keep user ids equal inside and outside of a rootless container."""
    return ["--userns=keep-id"] if os.getuid() else []


ENGINE = Engine("podman", gpu_options, user_options)
serve = partial(serve_in_engine, ENGINE)
