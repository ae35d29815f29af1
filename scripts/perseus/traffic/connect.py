"""Choose the transport for the protocol of a route, gRPC or HTTP. Import only the module of this
transport."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from perseus.traffic.route import Route
from perseus.traffic.transport import Transport


def connect(route: Route) -> Transport:
    """Return the transport for a route.

    When its context begins, the transport connects to the server. If the transport cannot connect
    within 5 s, it raises RequestFailedError.
    """
    module = import_module(f"perseus.traffic.{route.protocol}_transport")
    return cast(Transport, module.TRANSPORT(route))
