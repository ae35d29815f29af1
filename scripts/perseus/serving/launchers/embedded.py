"""The launcher `embedded`: start and stop Triton as a child of the measuring process.

`embedded_triton` runs the server that comes with the pip package nvidia-pytriton: no container, no
root, loopback only.

    with terminate_as_exit(), embedded_triton(repository, log_path, cores=[0]) as server:
        measure(server.grpc_address)

Three nets catch what a server can leave behind. Leaving the context stops the server. If the
measuring process is killed so that it cannot do that, the kernel sends SIGTERM to the server. What
neither could remove (shared memory, a temporary folder) carries its owner in its name, and the next
start sweeps what belongs to owners that are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil

from perseus.host.gpu import cuda_environment
from perseus.host.orphans import make_folder, remove, sweep_dead_owners, unlink_memory
from perseus.host.signals import signals_deferred
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.serving.triton_command import BACKENDS, SHM_MIB, Ports, arguments, check_served
from perseus.serving.triton_process import local_ports, models_ready, serving, stop
from perseus.serving.triton_wheel import environment, fill_folder, find_installation
from perseus.study.tasks.measure import MeasuredServer


def serve(
    server: MeasuredServer,
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    *,
    say: Callable[[str], None],
    rate_limited_cores: int = 0,
) -> AbstractContextManager[RunningServer]:
    """Serve as `launch` does; it needs no progress messages."""
    return embedded_triton(
        repository, log_path, cores, rate_limited_cores=rate_limited_cores, gpus=server.gpus
    )


@contextmanager
def embedded_triton(
    repository: Path,
    log_path: Path,
    cores: Sequence[int],
    ready_timeout_s: float = 120.0,
    *,
    backends: Path = BACKENDS,
    shm_mib: int = SHM_MIB,
    rate_limited_cores: int = 0,
    gpus: Sequence[int] = (),
) -> Iterator[RunningServer]:
    """Serve a model repository with the tritonserver of nvidia-pytriton while the context is open.

    Enter it from a thread that lives as long as the context does (the main thread, say): the kernel
    ends the server together with the *thread* that started it. Close clients before you leave it:
    the server is then ended at once, else only after it has answered and unloaded (seconds).

    Args:
        repository: Triton model repository; every model in it is loaded.
        log_path: file for the server's output; overwritten, its folder is made.
        cores: CPU ids that the server and its stubs may use.
        ready_timeout_s: seconds until all models must be ready.
        backends: folder of python-based backends, `<name>/model.py` each.
        shm_mib: shared memory per model instance in MiB, initially and per growth step, at least 4.
        rate_limited_cores: cores that tenants with a priority share by Triton's rate limiter; 0
            switches it off.
        gpus: GPUs of this host that the server sees, and numbers from 0 on.

    Raises:
        GpuError: CUDA_VISIBLE_DEVICES does not leave these GPUs to this process.
        ServerError: no or an unsuitable installation, cores that are not available, a server that
            ends early, a model that does not load, or a time-out. Nothing stays behind then.
    """
    check_served(repository, cores)
    _check_arguments(backends, shm_mib)
    installation = find_installation()
    sweep_dead_owners()
    with signals_deferred():
        folder = make_folder()

    def command(ports: Ports) -> list[str]:
        return [
            str(installation.binary),
            f"--backend-directory={folder / 'backends'}",
            *arguments(folder.name, folder / "models", ports, shm_mib, rate_limited_cores),
        ]

    try:
        fill_folder(folder, installation, backends)
        (folder / "models").symlink_to(repository.resolve())  # the name of the folder is arbitrary
        with serving(
            command,
            cores,
            log_path,
            environment(installation, folder) | cuda_environment(gpus),
            ready=_serves,
            ready_timeout_s=ready_timeout_s,
            end=stop,
        ) as (process, ports):
            unlink_memory(folder.name)
            yield ports.running(process.pid)
    finally:
        with signals_deferred():
            remove(folder)


def _check_arguments(backends: Path, shm_mib: int) -> None:
    if not backends.is_dir():
        raise ServerError(f"{backends}: no such folder of python-based backends.")
    if shm_mib < 4:
        raise ServerError(f"shm_mib is {shm_mib}, but a model instance needs at least 4 MiB.")


def _serves(pid: int, ports: Ports) -> bool:
    # This server must own the ports, since another server may answer.
    return models_ready(ports.http) and local_ports(pid, psutil.CONN_LISTEN).issuperset(ports)
