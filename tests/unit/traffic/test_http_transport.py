"""What a request over HTTP says, and what an answer makes of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from fake_server import FakeHttpServer
from unit.traffic.test_client import route

from perseus.traffic.connect import connect
from perseus.traffic.http_transport import _reply
from perseus.traffic.requests import Status


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (200, Status.OK),
        (429, Status.REFUSED),
        (503, Status.REFUSED),
        (400, Status.ERROR),
        (500, Status.ERROR),
    ],
)
def test_what_a_server_does_not_take_is_refused(code, status):
    """As over gRPC, where 429 and 503 of a proxy are UNAVAILABLE."""
    reply = _reply(SimpleNamespace(status=code, headers={}), b"why")
    assert reply.status is status
    assert reply.message == ("" if code == 200 else f"HTTP {code}: why")


def test_no_server_is_asked_to_compress_its_answers():
    """Triton would do so on the cores that serve."""
    server = FakeHttpServer()
    try:
        with connect(route(server.address, "http")) as transport:
            transport.infer(0, 5.0)
    finally:
        server.stop()
    (headers,) = server.headers
    assert "Inference-Header-Content-Length" in headers
    assert {name for name in headers if name.lower().startswith("accept")} == set()
