"""Start a server, or connect to a remote server, with the configured launcher. Each launcher is a
module in `launchers`."""

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
    """Serve all models of `repository` on the CPUs `cores`.

    The returned context manager yields a `RunningServer` whose models are ready. When the context
    closes, also after an error, the launcher ends and removes everything that it started. The
    launcher raises ServerError if it cannot start the server.

    `repository` is None only for a remote server that already has all models. `say` gets messages
    about long steps, for example about the pull of an image. If tenants have priorities,
    `rate_limited_cores` is the number of cores that the tenants share by these priorities;
    otherwise it is 0. The function `serve` of each launcher has the same arguments and the same
    result as `launch`.
    """
    launcher = import_module(f"{launchers.__name__}.{server.launcher}")
    return launcher.serve(
        server, repository, log_path, cores, say=say, rate_limited_cores=rate_limited_cores
    )


@contextmanager
def cores_of(
    server: MeasuredServer, owner: str, say: Callable[[str], None], folder: Path = FOLDER
) -> Iterator[tuple[list[int], list[int]]]:
    """Reserve cores and GPUs on this host. Yield the server's cores and the client's cores.

    If another job uses one of the requested cores or GPUs, this job waits, and `say` gets a message
    with the name of the other job. `owner` is the name of this job in the messages of other jobs.
    `folder` is the folder of the lock files.

    A remote server has no cores on this host, so the list of the server's cores is empty. The
    client gets the configured number of cores. If another measurement on this host already sends
    load to the remote host, this job waits until the other measurement ends.

    Raises TooFewCoresError if this host has too few cores, GpuError if the server cannot use one of
    its GPUs, and LockError if a lock file is unusable.
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
