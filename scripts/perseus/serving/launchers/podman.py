"""Run NVIDIA's Triton container with podman, which needs no daemon."""

import os
from collections.abc import Sequence
from functools import partial

from perseus.serving.container_commands import Engine
from perseus.serving.containers import serve_in_engine


def gpu_options(gpus: Sequence[int | str]) -> list[str]:
    """Return the options for GPUs with these ids, by the Container Device Interface."""
    return [f"--device=nvidia.com/gpu={gpu}" for gpu in gpus]


def user_options() -> list[str]:
    """Return the options with which a user has the same id inside and outside of a rootless
    container."""
    return ["--userns=keep-id"] if os.getuid() else []


ENGINE = Engine("podman", gpu_options, user_options)
serve = partial(serve_in_engine, ENGINE)
