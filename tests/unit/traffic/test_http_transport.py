"""Tests of the contents of a request over HTTP, and of the result of a response."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import numpy as np
import pytest
from fake_server import FakeHttpServer
from unit.traffic.test_client import route

from perseus.traffic.connect import connect
from perseus.traffic.http_transport import HEADER_LENGTH, Reply, _reply, decode
from perseus.traffic.loops import OpenLoop
from perseus.traffic.requests import Status
from perseus.traffic.transport import RequestFailedError


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
    """The codes 429 and 503 are refusals. From a proxy, a gRPC client gets both codes as
    UNAVAILABLE, which is also a refusal."""
    body = b'{"outputs": []}'
    reply = _reply(SimpleNamespace(status=code, headers={}), body)
    assert reply.status is status
    assert reply.message == ("" if code == 200 else f"HTTP {code}: {body.decode()}")


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({HEADER_LENGTH: "3"}, b'{"}....', Status.OK),
        ({HEADER_LENGTH: "3"}, b'{"}', Status.OK),
        ({HEADER_LENGTH: "3"}, b'{"', Status.ERROR),  # the connection ended early
        ({HEADER_LENGTH: "0"}, b"....", Status.ERROR),
        ({HEADER_LENGTH: "-1"}, b"{....", Status.ERROR),
        ({}, b'{"outputs": []}', Status.OK),  # no tensors follow the JSON
        ({}, b"", Status.ERROR),
        ({}, b"<html>We are back soon</html>", Status.ERROR),
    ],
)
def test_not_all_that_is_fine_is_an_answer(headers, body, status):
    reply = _reply(SimpleNamespace(status=200, headers=headers), body)
    assert reply.status is status
    text = f"HTTP 200, but not the response of a model: {body.decode()}"
    assert reply.message == ("" if status is Status.OK else text)


@pytest.mark.parametrize("shape", [[10**20], [2**62, 2**62], [-1, 3], ["a"], [1.5], [2]])
def test_a_shape_that_cannot_be_is_refused(shape):
    head = json.dumps({"outputs": [{"name": "o", "datatype": "FP32", "shape": shape}]}).encode()
    with pytest.raises(RequestFailedError, match="does not come from a model"):
        decode(Reply(0, Status.OK, "", head + bytes(4), len(head)))


def test_no_server_is_asked_to_compress_its_answers():
    """Triton would compress the responses on the cores of the server."""
    server = FakeHttpServer()
    try:
        with connect(route(server.address, "http")) as transport:
            transport.infer(0, 5.0)
    finally:
        server.stop()
    (headers,) = server.headers
    assert HEADER_LENGTH in headers
    assert {name for name in headers if name.lower().startswith("accept")} == set()


def test_a_request_that_waits_for_the_asyncio_loop_is_sent_late():
    server = FakeHttpServer()
    try:
        with connect(route(server.address, "http")) as transport:
            transport._loop.call_soon_threadsafe(time.sleep, 0.05)
            loop = OpenLoop(100, np.full(20, time.monotonic_ns()))
            loop.offer(transport)
            while transport.in_flight:
                time.sleep(0.01)
    finally:
        server.stop()
    now_ns = time.monotonic_ns()
    requests = loop.requests(now_ns)
    assert np.all(requests.answered)
    assert np.percentile(requests.send_lag_ms(now_ns), 99) >= 40
