"""Run NVIDIA's Triton container with docker."""

from collections.abc import Sequence
from functools import partial

from perseus.serving.container_commands import Engine
from perseus.serving.containers import serve_in_engine


def gpu_options(gpus: Sequence[int | str]) -> list[str]:
    """Return the options with which a container may use the GPUs with these ids.

    docker reads the value of the option --gpus as CSV, so the list of GPUs needs quotation marks.
    """
    return [f'--gpus="device={",".join(map(str, gpus))}"', "--ulimit=memlock=-1"]


ENGINE = Engine("docker", gpu_options)
serve = partial(serve_in_engine, ENGINE)
