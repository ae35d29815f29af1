"""How a server is had: its launcher is the module of that name in `launchers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path

from perseus.host.cores import claimed_cores, split_cores
from perseus.serving import launchers
from perseus.serving.running_server import RunningServer
from perseus.study.tasks.measure import MeasuredServer


def launch(
    server: MeasuredServer,
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    *,
    say: Callable[[str], None],
    rate_limited_cores: int = 0,
) -> AbstractContextManager[RunningServer]:
    """Serve every model of `repository` on these CPUs. Every launcher has this function as `serve`.

    The context manager yields a `RunningServer` whose models all answer, and when it is left, for
    whatever reason, nothing that it started stays behind. It raises ServerError when no such server
    can be had.

    `say` hears what takes long, such as the pull of an image. `rate_limited_cores` are those that
    tenants with a priority share; 0: no tenant has one.
    """
    launcher = import_module(f"{launchers.__name__}.{server.launcher}")
    return launcher.serve(
        server, repository, log_path, cores, say=say, rate_limited_cores=rate_limited_cores
    )


@contextmanager
def cores_of(server: MeasuredServer) -> Iterator[tuple[list[int], list[int]]]:
    """(cores of the server, cores of the client) on this host.

    A remote server has none here, and its client takes as many as it is given: not those of
    another measurement that runs at the same time, for which it waits. Raises TooFewCoresError.
    """
    if server.remote is None:
        yield split_cores(server.cores)
        return
    with claimed_cores(server.remote.client_cores) as cores:
        yield [], cores
