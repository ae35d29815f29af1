"""Open the transport of a route. The module imports only the code of the route's protocol."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from perseus.traffic.route import Route
from perseus.traffic.transport import Transport


def connect(route: Route) -> Transport:
    """Return a transport as a context manager.

    Entering the context raises RequestFailedError if there is no connection within 5 s.
    """
    module = import_module(f"perseus.traffic.{route.protocol}_transport")
    return cast(Transport, module.TRANSPORT(route))
