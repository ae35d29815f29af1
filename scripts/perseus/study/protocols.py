"""Define the protocols of the client (gRPC and HTTP), and the largest number of requests that a
client process may have in flight with each protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MAX_IN_FLIGHT: Final[Mapping[str, int]] = {
    "grpc": 4096,
    # Over HTTP, each request in flight has its own connection. The client and the server can each
    # have at most 1024 connections and files open on usual systems.
    "http": 500,
}
"""Largest number of requests that one client process may have in flight, by protocol."""
