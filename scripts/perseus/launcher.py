"""How a server is had: one launcher for each kind in the configuration.

A launcher is a context manager. It yields a `RunningServer` whose models all answer, and when it is
left, for whatever reason, nothing that it started stays behind. It raises ServerError when no such
server can be had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from perseus.running_server import RunningServer
from perseus.server import embedded_triton


def launch(
    server: Mapping[str, Any],
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    *,
    rate_limited_cores: int = 0,
) -> AbstractContextManager[RunningServer]:
    """The server of a `plan.measure_slice`, serving every model of `repository` on these CPUs.

    `rate_limited_cores` are those that tenants with a priority share; 0: no tenant has one.
    """
    launchers = {"embedded": embedded_triton}
    start = launchers[server["launcher"]]
    return start(repository, log_path, cores, rate_limited_cores=rate_limited_cores)
