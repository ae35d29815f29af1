"""What an answer over HTTP makes of its request."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

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
