"""A Triton that runs by itself in explicit model control, as a remote server would; for tests."""

from __future__ import annotations

import secrets
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perseus.serving.triton_command import BACKENDS, free_ports
from perseus.serving.triton_wheel import environment, fill_backends, find_installation
from perseus.study.remote import Remote


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
    fill_backends(folder, installation, backends)
    (folder / "empty").mkdir()
    ports = free_ports()
    regions = f"elsewhere-{secrets.token_hex(4)}-"  # no other's, whose test runs beside this one
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
    with (folder / "triton.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=environment(installation)
        )
    try:
        # Ready: it has loaded what is its own, if it loads that by itself.
        _wait(f"http://{host}:{ports.http}/v2/health/ready", process, folder / "triton.log")
        yield Elsewhere(process, host, ports.grpc, ports.http, ports.metrics)
    finally:
        process.kill()
        process.wait()
        time.sleep(0.6)  # the stubs see it and end
        for region in Path("/dev/shm").glob(f"{regions}*"):
            region.unlink(missing_ok=True)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline_s = time.monotonic() + 30
    while time.monotonic() < deadline_s:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with opener.open(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(log.read_text()[-3000:])
