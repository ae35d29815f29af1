"""What would let a client offer more, where it is what limits."""

from __future__ import annotations

from collections.abc import Iterator

from perseus.study.tasks.measure import MeasuredClient, MeasuredServer


def what_would_help(client: MeasuredClient, server: MeasuredServer, client_cores: int) -> str:
    """In words, of what the study does not use yet."""
    return "what would help: " + ", ".join(_ways(client, server, client_cores))


def _ways(client: MeasuredClient, server: MeasuredServer, client_cores: int) -> Iterator[str]:
    if client.protocol == "http":
        yield "gRPC instead of HTTP (measurement.client.protocol)"
    if not client.shared_memory and server.remote is None:
        yield "inputs in shared memory (measurement.client.shared_memory)"
    if client.processes is not None and client.processes < client_cores:
        yield "more processes of the client (measurement.client.processes)"
    if server.remote is not None:
        yield "more cores for the client (remote.client_cores)"
    else:
        yield "more cores for the client (a larger machine)"
