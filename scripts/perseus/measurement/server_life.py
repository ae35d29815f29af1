"""Check that a server lives under load, and find the reason if it does not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.traffic.client import Client, ClientError

SILENT_S = 5.0  # without any response: the server was stopped, or hangs
SILENT_SLAS = 10  # the same in multiples of the longest SLA
UNHEARD_S = 3.0  # additional time without statistics: one or two readings may fail under load
DYING_S = 1.0  # a process closes its connections some time before it ends


class ServerLife:
    """Watches a server during one window; `longest_sla_s` is the longest of its tenants."""

    def __init__(
        self, server: RunningServer, clients: Sequence[Client], longest_sla_s: float
    ) -> None:
        self._server, self._clients = server, clients
        self._silent_s = max(SILENT_S, SILENT_SLAS * longest_sla_s)
        self._heard_s = time.monotonic()
        self._served_s = [self._heard_s] * len(clients)

    def heard(self) -> None:
        """Note that the server has sent its statistics, or responded to a health request."""
        self._heard_s = time.monotonic()

    def served(self, client: int) -> None:
        """Note that the statistics show more executed requests of a client, which may have timed
        out."""
        self._served_s[client] = time.monotonic()

    def require(self) -> None:
        """Raise ServerError if the server has ended, is stopped or silent."""
        if not self._server.alive():
            raise ServerError("the server is dead")
        # A server on another host has no visible process, and refuses connections at once if it is
        # dead.
        unheard_s = time.monotonic() - self._heard_s
        if self._server.pid is None and unheard_s > self._silent_s + UNHEARD_S:
            raise ServerError(f"the server has sent no statistics for {unheard_s:.0f} s")
        # A server that is far behind answers only requests that have timed out.
        now_s = time.monotonic()
        silent_s = max(
            min(client.silent_s(), now_s - served_s)
            for client, served_s in zip(self._clients, self._served_s, strict=True)
        )
        if silent_s > SILENT_S and self._server.stopped():
            raise ServerError("the server is stopped (SIGSTOP?)")
        if silent_s > self._silent_s:
            raise ServerError(f"the server has answered no request for {silent_s:.0f} s")


@contextmanager
def naming_death(server: RunningServer) -> Iterator[None]:
    """Convert any error caused by the end of the server into a ServerError that says so.

    Any connection may be the first to be closed: that of a request, of the statistics, or of a
    client that starts.
    """
    try:
        yield
    except (ServerError, ClientError) as error:
        deadline = time.monotonic() + DYING_S
        while server.pid is not None and server.alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        if server.alive():
            raise
        raise ServerError("the server ended during the measurement") from error
