"""Make a LiveSystem (a server under load by one client) for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from perseus.measurement.live_system import LiveSystem
from perseus.measurement.raw_results import RequestsWriter
from perseus.serving.running_server import RunningServer
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.client import Client


def of_one_client(
    server: RunningServer, client: Client, writer: RequestsWriter, **settings: Any
) -> LiveSystem:
    """Return a LiveSystem with constant gaps between requests, in which server and client use core
    0."""
    return LiveSystem(
        server,
        [client],
        Arrivals("constant", 1.0),
        [np.random.default_rng(0)],
        writer,
        server_cores=[0],
        client_cores=[0],
        **settings,
    )
