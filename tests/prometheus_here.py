"""Debian's Prometheus on the loopback interface, with the configuration of monitoring/."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from perseus.measurement.progress.exporter import PORT

SHIPPED = Path(__file__).parents[1] / "monitoring" / "prometheus"
needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="no prometheus and promtool on the path (Debian's package prometheus)",
)


@dataclass(frozen=True)
class Prometheus:
    address: str

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an expression now: their labels and `value`."""
        asked = urllib.parse.urlencode({"query": expression})
        found = self.get(f"/api/v1/query?{asked}")["result"]
        return [{**each["metric"], "value": float(each["value"][1])} for each in found]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return json.load(answer)["data"]

    def until(self, found: Callable[[], Any], timeout_s: float = 60.0) -> Any:
        """Return the first non-empty value of `found`."""
        deadline_s = time.monotonic() + timeout_s
        while not (value := found()):
            assert time.monotonic() < deadline_s, self.get("/api/v1/targets")
            time.sleep(0.2)
        return value


@contextmanager
def prometheus(folder: Path, exporter: str) -> Iterator[Prometheus]:
    """Run Prometheus with the shipped configuration for this exporter, at intervals of 1 s."""
    shutil.copytree(SHIPPED, folder / "etc")
    path = folder / "etc" / "prometheus.yml"
    config = yaml.safe_load(path.read_text().replace(f"127.0.0.1:{PORT}", exporter))
    config["global"] = dict.fromkeys(config["global"], "1s")
    path.write_text(yaml.safe_dump(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        "prometheus",
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            wait_until_ready(process, address, folder / "log")
            yield Prometheus(address)
        finally:
            process.terminate()


def wait_until_ready(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline_s = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"http://{address}/-/ready", timeout=5):
                return
        except (OSError, urllib.error.URLError):
            assert process.poll() is None and time.monotonic() < deadline_s, log.read_text()
            time.sleep(0.1)


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
