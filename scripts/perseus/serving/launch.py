"""Start a server: its launcher is the module of that name in `launchers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path

from perseus.host import gpu
from perseus.host.cores import claimed_cores, core_locks, split_cores
from perseus.host.exclusive import FOLDER, exclusive
from perseus.serving import launchers
from perseus.serving.running_server import RunningServer
from perseus.study.tasks.measure import MeasuredServer


def launch(
    server: MeasuredServer,
    repository: Path | None,
    log_path: Path,
    cores: Sequence[int],
    *,
    say: Callable[[str], None],
    rate_limited_cores: int = 0,
) -> AbstractContextManager[RunningServer]:
    """Serve all models of `repository` on these CPUs; every launcher has this function as `serve`.

    `repository` is None only for a remote server that already has all models. The context manager
    yields a `RunningServer` whose models are ready. On exit, also after an error, it removes
    everything that it started. It raises ServerError if the server cannot be started. `say` takes
    messages about long steps, such as the pull of an image. `rate_limited_cores` are the cores that
    tenants with a priority share; 0 if no tenant has one.
    """
    launcher = import_module(f"{launchers.__name__}.{server.launcher}")
    return launcher.serve(
        server, repository, log_path, cores, say=say, rate_limited_cores=rate_limited_cores
    )


@contextmanager
def cores_of(
    server: MeasuredServer, owner: str, say: Callable[[str], None], folder: Path = FOLDER
) -> Iterator[tuple[list[int], list[int]]]:
    """Reserve (cores of the server, cores of the client) on this host, and the server's GPUs.

    `say` gets the message for whom the job waits; `owner` is the name that others see. A remote
    server has no cores here. Its client takes the configured number, when no other measurement of
    this host loads a server of the same name. Raises TooFewCoresError, GpuError, and LockError if a
    lock in `folder` cannot be used.
    """
    if server.remote is not None:
        with (
            exclusive({f"perseus-{server.remote.slot}"}, owner, say, folder),
            claimed_cores(server.remote.client_cores, owner, say, folder) as cores,
        ):
            yield [], cores
        return
    server_cores, client_cores = split_cores(server.cores)
    locks = core_locks([*server_cores, *client_cores]) | gpu.locks(server.gpus)
    with exclusive(locks, owner, say, folder):
        yield server_cores, client_cores
