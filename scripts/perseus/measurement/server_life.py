"""Check under load that a server is alive, and report an error if the server has ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.traffic.client import Client, ClientError

SILENT_S = 5.0  # after this time without a response, the server may be suspended or may hang
SILENT_SLAS = 10  # a hanging server is also silent for this multiple of the longest latency limit
UNHEARD_S = 3.0  # additional time allowed without statistics, because readings may fail
DYING_S = 1.0  # longest time from the end of a server's connections to the end of its process


class ServerLife:
    """Watches a server during one window."""

    def __init__(
        self, server: RunningServer, clients: Sequence[Client], longest_sla_s: float
    ) -> None:
        self._server, self._clients = server, clients
        self._silent_s = max(SILENT_S, SILENT_SLAS * longest_sla_s)
        self._heard_s = time.monotonic()
        self._served_s = [self._heard_s] * len(clients)

    def heard(self) -> None:
        """Record that the server has sent its statistics, or responded to a health request."""
        self._heard_s = time.monotonic()

    def served(self, client: int) -> None:
        """Record that the server has just executed requests of a client, including requests that
        have timed out."""
        self._served_s[client] = time.monotonic()

    def require(self) -> None:
        """Raise ServerError if the server has ended, is suspended, or sends no responses."""
        if not self._server.alive():
            raise ServerError("the server has ended")
        # A server on another host has no visible process, so only missing responses show its end.
        unheard_s = time.monotonic() - self._heard_s
        if self._server.pid is None and unheard_s > self._silent_s + UNHEARD_S:
            raise ServerError(f"the server has sent no statistics for {unheard_s:.0f} s")
        # Executed requests also show that the server is alive, because an overloaded server may
        # answer only requests that have already timed out.
        now_s = time.monotonic()
        silent_s = max(
            min(client.silent_s(), now_s - served_s)
            for client, served_s in zip(self._clients, self._served_s, strict=True)
        )
        if silent_s > SILENT_S and self._server.stopped():
            raise ServerError("the server's process is stopped (SIGSTOP?)")
        if silent_s > self._silent_s:
            raise ServerError(f"the server has answered no request for {silent_s:.0f} s")


@contextmanager
def reporting_end_of_server(server: RunningServer) -> Iterator[None]:
    """If an error occurs and the server has ended, raise a ServerError that says that the server
    has ended.

    If the server ends, the first error comes from a request, from a reading of the statistics, or
    from a client that connects. This first error does not say that the server has ended.
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
