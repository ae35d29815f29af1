"""What requests carry: images in turn, in order, in or beside shared memory."""

from types import SimpleNamespace

import numpy as np
import pytest

from perseus.route import inline, request_images, route_to


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
    (found,) = inline([batch])
    assert found.shape == (2, 3, 2, 2) and found.size_bytes == 96
    assert np.array_equal(np.frombuffer(found.data, np.float32).reshape(found.shape), batch)


def test_a_route_leads_to_the_address_of_its_protocol():
    server = SimpleNamespace(grpc_address="g", http_address="h")
    for protocol, address in (("grpc", "g"), ("http", "h")):
        client = {"protocol": protocol, "shared_memory": False}
        with route_to(server, "m", [np.zeros((1, 3, 2, 2), np.float32)], client, 5.0) as route:
            assert (route.protocol, route.address, route.model) == (protocol, address, "m")
