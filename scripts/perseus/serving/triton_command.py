"""Build the command line of a tritonserver that listens on the loopback address."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from perseus.models.rate_limiter import RESOURCE
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer

BACKENDS = Path(__file__).resolve().parents[2] / "backends"
"""Folder of Perseus's Python backends. The file `<runtime>/model.py` in this folder is the backend
of a runtime."""
TENSORS = "perseus_tensors.py"
"""Name of a module in the folder BACKENDS that all backends import, also the backends of tests."""
SHM_MIB = 16
"""Shared memory in MiB that a model instance has at its start. Each time an instance needs more
shared memory, Triton adds SHM_MIB MiB."""
DRAIN_S = 10
"""Longest time in seconds that Triton works on accepted requests before it exits."""


class Ports(NamedTuple):
    """The ports of one server on the loopback address."""

    http: int
    grpc: int
    metrics: int

    def running(
        self, pid: int | None, startup_s: float, image_id: str | None = None
    ) -> RunningServer:
        return RunningServer(
            grpc_address=f"127.0.0.1:{self.grpc}",
            http_address=f"127.0.0.1:{self.http}",
            metrics_url=f"http://127.0.0.1:{self.metrics}/metrics",
            pid=pid,
            image_id=image_id,
            startup_s=startup_s,
        )


def check_served(repository: Path, cores: Sequence[int]) -> None:
    """Raise ServerError if the model repository is missing, or if no core is left for the
    server."""
    if not cores:
        raise ServerError(
            "no CPU core is left for the server: the server needs at least one core that the "
            "client does not use. Measure on a host with at least two cores, or give the client "
            "fewer cores."
        )
    if not repository.is_dir():
        raise ServerError(f"the model repository {repository} does not exist; build it first.")


def free_ports() -> Ports:
    """Return three ports of the loopback address that no program uses now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return Ports(*(each.getsockname()[1] for each in sockets))


def arguments(
    name: str, repository: Path, ports: Ports, shm_mib: int, rate_limited_cores: int
) -> list[str]:
    """Return the arguments of a tritonserver that serves all models of `repository`, on the
    loopback address only.

    `name` is a name from `orphans.unique_name`. The server reports `name`, and the names of its
    shared-memory regions contain `name`. At its start, each model instance has `shm_mib` MiB of
    shared memory. Each time an instance needs more, Triton adds `shm_mib` MiB. `rate_limited_cores`
    is the number of cores that tenants with a priority share; 0 switches the rate limiter off.
    """
    shm_bytes = shm_mib * 2**20
    limits = [
        "--rate-limit=execution_count",
        f"--rate-limit-resource={RESOURCE}:{rate_limited_cores}",
    ]
    return [
        f"--id={name}",
        f"--model-repository={repository}",
        "--disable-auto-complete-config",
        # Triton appends a UUID to the prefix without a separator, so the prefix ends with one.
        f"--backend-config=python,shm-region-prefix-name={name}-",
        f"--backend-config=python,shm-default-byte-size={shm_bytes}",
        f"--backend-config=python,shm-growth-byte-size={shm_bytes}",
        "--http-address=127.0.0.1",
        f"--http-port={ports.http}",
        "--grpc-address=127.0.0.1",
        f"--grpc-port={ports.grpc}",
        "--metrics-address=127.0.0.1",
        f"--metrics-port={ports.metrics}",
        "--metrics-interval-ms=1000",
        f"--exit-timeout-secs={DRAIN_S}",
        *(limits if rate_limited_cores else []),
    ]
