"""A Triton that runs by itself in explicit model control, as a remote server would; for tests."""

from __future__ import annotations

import secrets
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perseus.serving.triton_command import BACKENDS, Ports, free_ports
from perseus.serving.triton_wheel import environment, fill_folder, find_installation
from perseus.study.remote import Remote

STARTS = 3


@dataclass(frozen=True)
class Elsewhere:
    """The process and the ports of a server, all on one address."""

    process: subprocess.Popen[bytes]
    host: str
    grpc_port: int
    http_port: int
    metrics_port: int

    def remote(self, **more: Any) -> Remote:
        """The `remote` part of a server."""
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
    """`prefix` is a command that runs the server, such as `ip netns exec <name>`; `repository` has
    the models of its own, none without."""
    installation = find_installation()
    fill_folder(folder, installation, backends)
    (folder / "empty").mkdir()
    regions = f"elsewhere-{secrets.token_hex(4)}-"  # no other's, whose test runs beside this one
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
            )

    for _ in range(STARTS):  # a test beside this one may take a port before the server has it
        ports = free_ports()
        process = start(ports)
        if _is_ready(process, log):
            break
    else:
        raise AssertionError(log.read_text()[-3000:])
    try:
        yield Elsewhere(process, host, ports.grpc, ports.http, ports.metrics)
    finally:
        process.kill()
        process.wait()
        time.sleep(0.6)  # the stubs see it and end
        for region in Path("/dev/shm").glob(f"{regions}*"):
            region.unlink(missing_ok=True)


def _is_ready(process: subprocess.Popen[bytes], log: Path) -> bool:
    """Waits until it has loaded what is its own and opened all ports, of which the metrics' is the
    last; False if it has ended. Its log tells: on its ports somebody else might answer."""
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
