"""Choose the transport for the protocol of a route, gRPC or HTTP. Import only the code of this
protocol."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from perseus.traffic.route import Route
from perseus.traffic.transport import Transport


def connect(route: Route) -> Transport:
    """Return the transport for a route. The transport connects when its context begins.

    At this moment, the transport raises RequestFailedError if it cannot connect within 5 s.
    """
    module = import_module(f"perseus.traffic.{route.protocol}_transport")
    return cast(Transport, module.TRANSPORT(route))
