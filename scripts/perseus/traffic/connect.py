"""Open the transport that a route asks for: the module of its protocol, which no other imports."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from perseus.traffic.route import Route
from perseus.traffic.transport import Transport


def connect(route: Route) -> Transport:
    """A transport, to be entered. That raises RequestFailedError without a connection in 5 s."""
    module = import_module(f"perseus.traffic.{route.protocol}_transport")
    return cast(Transport, module.TRANSPORT(route))
