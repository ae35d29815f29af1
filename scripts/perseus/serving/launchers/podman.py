"""Run NVIDIA's Triton container with podman, which needs no daemon."""

import os
from collections.abc import Sequence
from functools import partial

from perseus.serving.container_commands import Engine
from perseus.serving.containers import serve_in_engine


def gpu_options(gpus: Sequence[int | str]) -> list[str]:
    """Return the options with which a container may use the GPUs with these ids.

    The options name the GPUs as devices of the Container Device Interface (CDI).
    """
    return [f"--device=nvidia.com/gpu={gpu}" for gpu in gpus]


def user_options() -> list[str]:
    """Return the options that give the user the same id inside a rootless container as outside."""
    return ["--userns=keep-id"] if os.getuid() else []


ENGINE = Engine("podman", gpu_options, user_options)
serve = partial(serve_in_engine, ENGINE)
