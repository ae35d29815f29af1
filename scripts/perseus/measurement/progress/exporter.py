"""Offer the progress of running cells to Prometheus, by HTTP on the loopback address.

`/metrics` contains the progress of the cells. `/targets` contains the addresses at which Prometheus
can read the metrics of the cells' servers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from perseus.measurement.progress.exposition import metrics, targets
from perseus.measurement.progress.file import under_way

LOOPBACK: Final = "127.0.0.1"
PORT: Final = 9877


class Exporter(ThreadingHTTPServer):
    """An HTTP server that reads the progress files of the running cells at each request.

    `logs` is the folder with the logs of all studies. With port 0, the server uses a free port.
    Raises OSError if another program uses the port.
    """

    daemon_threads = True

    def __init__(self, logs: Path, port: int = PORT) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.logs = logs
        self.registry = CollectorRegistry()
        self.registry.register(_Measured(logs))

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.server_port}"


class _Measured(Collector):
    def __init__(self, logs: Path) -> None:
        self._logs = logs

    def collect(self) -> Iterator[Metric]:
        return metrics(under_way(self._logs))


class _Handler(BaseHTTPRequestHandler):
    server: Exporter

    def do_GET(self) -> None:
        match self.path:
            case "/metrics":
                self._answer(CONTENT_TYPE_LATEST, generate_latest(self.server.registry))
            case "/targets":
                found = targets(under_way(self.server.logs))
                self._answer("application/json", json.dumps(found).encode())
            case _:
                self.send_error(HTTPStatus.NOT_FOUND, "Read /metrics or /targets")

    def _answer(self, content_type: str, body: bytes) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Ignore the message. Otherwise each request of Prometheus would add a line to the log."""
