"""Protocols of requests, and how many a client process may have in flight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MAX_IN_FLIGHT: Final[Mapping[str, int]] = {
    "grpc": 4096,
    # Each request has a connection: a process can commonly open 1024 files, here and in the server.
    "http": 500,
}
"""Largest number of requests in flight of a client process, by protocol."""
