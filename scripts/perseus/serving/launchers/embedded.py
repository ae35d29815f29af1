"""Start and stop Triton as a child of the measuring process.

`embedded_triton` runs the server of the pip package nvidia-pytriton. The server needs no container
and no root rights, and listens only on the loopback address.

    with terminate_as_exit(), embedded_triton(repository, log_path, cores=[0]) as server:
        measure(server.grpc_address)

Three mechanisms end a server and remove what it leaves behind:

1. When the context closes, Perseus stops the server, and removes its temporary folder.
2. If the measuring process is killed while the context is open, the kernel sends SIGTERM to the
   server.
3. The names of shared memory and temporary folders identify the measuring process. Before the next
   start of a server, Perseus removes the shared memory and the folders of ended processes.
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
    """Serve a model repository with the tritonserver of nvidia-pytriton. This launcher sends no
    messages to `say`."""
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

    The kernel ends the server together with the *thread* that started it. Enter the context in a
    thread that does not end before the context closes, for example in the main thread. Close all
    clients before you leave the context. If no client is connected at the end of the context, the
    server ends at once. If a client is still connected, the end takes seconds, because the server
    first responds to all requests and unloads its models.

    Args:
        repository: Triton model repository; the server loads every model.
        log_path: file for the server's output. The function creates its folder, and overwrites an
            earlier file.
        cores: CPU ids that the server and its stubs may use.
        ready_timeout_s: seconds within which all models must become ready.
        backends: folder of Python backends; each backend is a file `<name>/model.py`.
        shm_mib: shared memory of a model instance at its start, in MiB; at least 4. Each time the
            instance needs more, Triton adds this amount.
        rate_limited_cores: number of cores that Triton's rate limiter divides between tenants with
            a priority; 0 switches the rate limiter off.
        gpus: GPUs of this host that the server can use; the server numbers these GPUs from 0.

    Raises:
        GpuError: CUDA_VISIBLE_DEVICES hides one of the GPUs in `gpus` from this process.
        ServerError: nvidia-pytriton is missing or unsuitable, no core is available, the server ends
            early, a model does not load, or the models are not ready in time. After an error, no
            process, shared memory or folder of the server remains.
    """
    check_served(repository, cores)
    if not backends.is_dir():
        raise ServerError(f"the folder {backends} of Python backends does not exist.")
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
        # Triton gets the path of this link, so the path of the repository may have any characters.
        (folder / "models").symlink_to(repository.resolve())
        with serving(
            command,
            cores,
            log_path,
            environment(installation, folder) | cuda_environment(gpus),
            ready=_serves,
            ready_timeout_s=ready_timeout_s,
            end=stop,
        ) as (process, ports, startup_s):
            unlink_memory(folder.name)
            yield ports.running(process.pid, startup_s)
    finally:
        with signals_deferred():
            remove(folder)


def _serves(pid: int, ports: Ports) -> bool:
    # Another server may respond on these ports, so check that this server listens on them.
    return models_ready(ports.http) and local_ports(pid, psutil.CONN_LISTEN).issuperset(ports)
