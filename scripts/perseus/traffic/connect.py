"""Connect to the server of a route over gRPC or HTTP, and import only the code of this protocol."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from perseus.traffic.route import Route
from perseus.traffic.transport import Transport


def connect(route: Route) -> Transport:
    """Return the transport for a route, which connects when its context begins.

    The transport raises RequestFailedError if it cannot connect within 5 s.
    """
    module = import_module(f"perseus.traffic.{route.protocol}_transport")
    return cast(Transport, module.TRANSPORT(route))
