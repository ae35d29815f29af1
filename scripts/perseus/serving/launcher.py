"""How a server is had: one launcher for each kind in the configuration.

A launcher is a context manager. It yields a `RunningServer` whose models all answer, and when it is
left, for whatever reason, nothing that it started stays behind. It raises ServerError when no such
server can be had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from perseus.host.gpu import visible
from perseus.serving.containers import apptainer_triton, engine_triton
from perseus.serving.embedded import embedded_triton
from perseus.serving.remote import remote_triton
from perseus.serving.running_server import RunningServer


def launch(
    server: Mapping[str, Any],
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    *,
    say: Callable[[str], None],
    rate_limited_cores: int = 0,
) -> AbstractContextManager[RunningServer]:
    """The server of a `plan.measure_slice`, serving every model of `repository` on these CPUs.

    `say` hears what takes long, such as the pull of an image. `rate_limited_cores` are those that
    tenants with a priority share; 0: no tenant has one.
    """
    start: Callable[..., AbstractContextManager[RunningServer]]
    match server["launcher"]:
        case "embedded":
            start = partial(embedded_triton, gpus=server.get("gpus", ()))
        case "docker" | "podman" as program:
            start = partial(engine_triton, program, **_container(server), say=say)
        case "apptainer":
            start = partial(apptainer_triton, **_container(server), say=say)
        case "remote":
            return remote_triton(server["remote"], repository, log_path, say=say)
    return start(repository, log_path, cores, rate_limited_cores=rate_limited_cores)


def _container(server: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "image": server["image"],
        "runtime": server["runtime"],
        "gpus": visible(server.get("gpus", ())),
    }
