"""Describe a running server in the same way for all launchers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import psutil

from perseus.serving.access import PLAIN, Access

STATISTICS, CONFIGURATION, BINARY, REPOSITORY = (
    "statistics",
    "model_configuration",
    "binary_tensor_data",
    "model_repository",
)
"""The extensions of the Open Inference Protocol that Perseus uses. A server reports its extensions
under these names."""
OF_TRITON: Final = frozenset({STATISTICS, CONFIGURATION, BINARY, REPOSITORY})


@dataclass(frozen=True)
class RunningServer:
    """A server that is ready to serve: its addresses and its process."""

    grpc_address: str
    """`host:port` of the gRPC endpoint."""
    http_address: str
    """`host:port` of the HTTP endpoint."""
    metrics_url: str
    """URL of the Prometheus metrics."""
    pid: int | None
    """Process id of the server; None if the server runs on another host, or if this host does not
    show the process of the server."""
    access: Access = PLAIN
    """TLS and headers of all calls."""
    image_id: str | None = None
    """Id of the container's image for docker and podman; None for other launchers, or if the engine
    reports no id."""
    startup_s: float = 0.0
    """Time in seconds from the start of the server's process until all models were ready, without
    the pull of an image. For a remote server, the time to load the pushed models (0 without pushed
    models)."""
    protocol: str = "grpc"
    """Protocol with which Perseus asks the server about its state and its models: grpc, or http if
    the server has no gRPC."""
    extensions: frozenset[str] = OF_TRITON
    """Extensions of the Open Inference Protocol that the server supports."""

    @property
    def asked_address(self) -> str:
        """Return the `host:port` at which the server answers calls with `protocol`."""
        return self.http_address if self.protocol == "http" else self.grpc_address

    def alive(self) -> bool:
        """Return whether the server's process runs; always true if `pid` is None."""
        return self.pid is None or self._status() not in (None, psutil.STATUS_ZOMBIE)

    def stopped(self) -> bool:
        """Return whether a signal such as SIGSTOP has suspended the server's process."""
        return self._status() == psutil.STATUS_STOPPED

    def _status(self) -> str | None:
        if self.pid is None:
            return None
        try:
            return psutil.Process(self.pid).status()
        except psutil.NoSuchProcess:
            return None
