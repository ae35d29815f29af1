"""Tests of the data in requests: images in turn, with and without shared memory."""

import json
from concurrent import futures
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
from measure_tasks import client
from tritonclient.grpc import service_pb2

from perseus.serving.running_server import RunningServer
from perseus.traffic import grpc_transport, http_transport
from perseus.traffic import route as route_module
from perseus.traffic.route import INPUT, RouteError, inline, request_images, route_to, shared


@pytest.mark.parametrize(
    ("images", "batch_size", "expected"),
    [
        (3, 1, [[0], [1], [2]]),
        (4, 2, [[0, 1], [2, 3]]),
        (3, 2, [[0, 1], [2, 0], [1, 2]]),
        (2, 4, [[0, 1, 0, 1]]),
        (20, 1, [[i] for i in range(8)]),
    ],
)
def test_images_take_turns(images, batch_size, expected):
    assert request_images(images, batch_size) == expected


def test_inputs_are_the_bytes_of_their_batches():
    batch = np.arange(2 * 3 * 4, dtype=np.float64).reshape(2, 3, 2, 2)[:, :, ::-1]
    ((found,),) = inline([batch])
    assert (found.name, found.datatype) == ("input", "FP32")
    assert found.shape == (2, 3, 2, 2) and found.size_bytes == 96
    assert np.array_equal(np.frombuffer(found.data, np.float32).reshape(found.shape), batch)


def test_a_route_leads_to_the_address_of_its_protocol():
    server = RunningServer("g", "h", "", None)
    for protocol, address in (("grpc", "g"), ("http", "h")):
        batch = np.zeros((1, 3, 2, 2), np.float32)
        with route_to(server, client(protocol), "m", [batch], 5.0) as route:
            assert (route.protocol, route.address, route.model) == (protocol, address, "m")


def test_shared_memory_that_is_refused_is_explained_and_leaves_nothing(tmp_path, monkeypatch):
    batches = [np.zeros((1, 3, 2, 2), np.float32)]
    monkeypatch.setattr(route_module, "SHM", tmp_path)
    with pytest.raises(RouteError, match="does not accept inputs"), shared(batches, "127.0.0.1:1"):
        pytest.fail("there is no server")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(route_module, "SHM", tmp_path / "missing")
    with pytest.raises(RouteError, match="do not fit into"), shared(batches, "127.0.0.1:1"):
        pytest.fail("there is no shared memory")


def test_no_call_to_the_server_uses_the_proxy_of_the_environment(monkeypatch):
    """A company's proxy cannot reach a server on the loopback interface, and the variable NO_PROXY
    may be missing."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    accepts = grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
    handler = SimpleNamespace(service=lambda call: accepts)
    with futures.ThreadPoolExecutor() as pool:
        server = grpc.server(pool, [handler])
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        with shared([np.zeros((1, 3, 2, 2), np.float32)], address) as inputs:
            assert len(inputs) == 1
        server.stop(0).wait()


def test_pictures_travel_as_the_bytes_that_they_are():
    rows = np.arange(12, dtype=np.uint8).reshape(2, 6)
    (inputs,) = inline([{INPUT: rows}])
    (found,) = inputs
    assert (found.shape, found.datatype, found.data) == ((2, 6), "UINT8", rows.tobytes())
    asked = service_pb2.ModelInferRequest.FromString(grpc_transport.serialise("m", inputs))
    assert (asked.inputs[0].datatype, list(asked.inputs[0].shape)) == ("UINT8", [2, 6])
    assert list(asked.raw_input_contents) == [rows.tobytes()]
    body, head_bytes = http_transport.serialise(inputs)
    described = json.loads(body[:head_bytes])["inputs"][0]
    assert (described["datatype"], described["shape"]) == ("UINT8", [2, 6])
    assert body[head_bytes:] == rows.tobytes()
