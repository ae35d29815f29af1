"""A Triton in explicit model control, which runs independently of Perseus like a remote server."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perseus.serving.triton_command import BACKENDS, Ports, free_ports
from perseus.serving.triton_wheel import environment, fill_folder, find_installation
from perseus.study.remote import Remote

STARTS = 3


@dataclass(frozen=True)
class Elsewhere:
    """A server process and its ports, all on one address."""

    process: subprocess.Popen[bytes]
    host: str
    grpc_port: int
    http_port: int
    metrics_port: int

    def remote(self, **more: Any) -> Remote:
        """Return the `remote` part of the configuration of this server."""
        return Remote(
            host=self.host,
            grpc=f"{self.host}:{self.grpc_port}",
            http=f"{self.host}:{self.http_port}",
            metrics=f"http://{self.host}:{self.metrics_port}/metrics",
            **more,
        )


@contextmanager
def triton_elsewhere(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    prefix: Sequence[str] = (),
    control: str = "explicit",
    backends: Path = BACKENDS,
    repository: Path | None = None,
    arguments: Sequence[str] = (),
) -> Iterator[Elsewhere]:
    """Run a server.

    `prefix` is a command that runs the server, such as `ip netns exec <name>`. `repository`
    contains the server's own models. If `repository` is None, the server has no models of its own.
    """
    installation = find_installation()
    fill_folder(folder, installation, backends)
    (folder / "empty").mkdir()
    regions = f"elsewhere-{secrets.token_hex(4)}-"  # a separate name for each test
    log = folder / "triton.log"

    def start(ports: Ports) -> subprocess.Popen[bytes]:
        command = [
            *prefix,
            str(installation.binary),
            f"--model-repository={repository or folder / 'empty'}",
            f"--model-control-mode={control}",
            f"--backend-directory={folder / 'backends'}",
            "--disable-auto-complete-config",
            f"--http-address={host}",
            f"--http-port={ports.http}",
            f"--grpc-address={host}",
            f"--grpc-port={ports.grpc}",
            f"--metrics-address={host}",
            f"--metrics-port={ports.metrics}",
            f"--backend-config=python,shm-region-prefix-name={regions}",
            "--backend-config=python,shm-default-byte-size=16777216",
            *arguments,
        ]
        with log.open("wb") as file:
            return subprocess.Popen(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment(installation, folder),
                start_new_session=True,
            )

    for _ in range(STARTS):  # another test may take a port before this server opens it
        ports = free_ports()
        process = start(ports)
        if _is_ready(process, log):
            break
    else:
        raise AssertionError(log.read_text()[-3000:])
    try:
        yield Elsewhere(process, host, ports.grpc, ports.http, ports.metrics)
    finally:
        with suppress(ProcessLookupError):  # a stub of a Python backend may outlive its server
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for region in Path("/dev/shm").glob(f"{regions}*"):
            region.unlink(missing_ok=True)


def _is_ready(process: subprocess.Popen[bytes], log: Path) -> bool:
    """Wait until the server has loaded its own models and opened all ports; return whether it has.

    The server opens the port of the metrics last. The function reads the log and not the ports,
    because another server might answer on the ports.
    """
    deadline_s = time.monotonic() + 30
    while time.monotonic() < deadline_s:
        if process.poll() is not None:
            return False
        if "Started Metrics Service" in log.read_text(errors="replace"):
            return True
        time.sleep(0.1)
    process.kill()
    process.wait()
    return False
