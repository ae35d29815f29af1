"""Open the transport that a route asks for."""

from __future__ import annotations

from perseus.route import Route
from perseus.transport import Transport
from perseus.transport_grpc import GrpcTransport
from perseus.transport_http import HttpTransport

_TRANSPORTS: dict[str, type[GrpcTransport] | type[HttpTransport]] = {
    "grpc": GrpcTransport,
    "http": HttpTransport,
}


def connect(route: Route) -> Transport:
    """A transport, to be entered. That raises RequestFailedError without a connection in 5 s."""
    return _TRANSPORTS[route.protocol](route)
