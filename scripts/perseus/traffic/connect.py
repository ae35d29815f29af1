"""Open the transport that a route asks for."""

from __future__ import annotations

from perseus.traffic.grpc_transport import GrpcTransport
from perseus.traffic.http_transport import HttpTransport
from perseus.traffic.route import Route
from perseus.traffic.transport import Transport

_TRANSPORTS: dict[str, type[GrpcTransport] | type[HttpTransport]] = {
    "grpc": GrpcTransport,
    "http": HttpTransport,
}


def connect(route: Route) -> Transport:
    """A transport, to be entered. That raises RequestFailedError without a connection in 5 s."""
    return _TRANSPORTS[route.protocol](route)
