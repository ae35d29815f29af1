"""Tests of requests over gRPC against grpcio servers that are small, busy, old or gone."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager

import grpc
import numpy as np
import pytest
from certificate_files import make_certificate
from tritonclient.grpc import service_pb2

from perseus.models.tensors import DTYPES
from perseus.serving.access import PLAIN, Access, Header
from perseus.traffic import http2_client
from perseus.traffic.grpc_transport import METHOD, GrpcTransport, decode, outcome
from perseus.traffic.http2_client import Call, End
from perseus.traffic.requests import Status
from perseus.traffic.route import Route, inline
from perseus.traffic.transport import RequestFailedError

LARGE = np.arange(3 * 1000 * 1000, dtype=np.float32).reshape(1, 3, 1000, 1000)  # 12 MB
HUGE = np.zeros((1, 3, 2000, 2000), np.float32)  # 48 MB, more than the system's buffers
SMALL = np.zeros((1, 3, 2, 2), np.float32)


def echo(request: bytes, context: grpc.ServicerContext) -> bytes:
    """Return the input as the output."""
    asked = service_pb2.ModelInferRequest.FromString(request)
    answer = service_pb2.ModelInferResponse(model_name="tenant")
    answer.outputs.add(name="output", datatype="FP32", shape=asked.inputs[0].shape)
    answer.raw_output_contents.append(asked.raw_input_contents[0])
    return answer.SerializeToString()


@contextmanager
def serving(answers=echo, port: int = 0, tls=None, **options: int) -> Iterator[str]:
    """Yield the address of a server with these gRPC options.

    `tls` contains the files of the server's key and certificate.
    """
    _, service, method = METHOD.split("/")
    handler = grpc.unary_unary_rpc_method_handler(answers)
    unlimited = {"max_receive_message_length": -1, "max_send_message_length": -1, "so_reuseport": 1}
    server = grpc.server(
        futures.ThreadPoolExecutor(20),
        options=[(f"grpc.{name}", value) for name, value in (unlimited | options).items()],
    )
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(service, {method: handler})]
    )
    if tls is None:
        port = server.add_insecure_port(f"127.0.0.1:{port}")
    else:
        pair = tuple(file.read_bytes() for file in tls)
        credentials = grpc.ssl_server_credentials([pair])
        port = server.add_secure_port(f"127.0.0.1:{port}", credentials)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


def transport(
    address: str, *images: np.ndarray, timeout_s: float = 20.0, access: Access = PLAIN
) -> GrpcTransport:
    inputs = inline(images or [SMALL])
    return GrpcTransport(Route("grpc", address, "tenant", inputs, timeout_s, access))


class Answers:
    """The results of requests, by request number. A second result of the same request is an
    error."""

    def __init__(self) -> None:
        self.told: list[tuple[int, Status]] = []
        self.messages: set[str] = set()

    def send(self, over: GrpcTransport, number: int) -> None:
        def answered(done_ns: int, status: Status, message: str) -> None:
            self.told.append((number, status))
            self.messages.add(message)

        over.send(number, answered)

    @property
    def statuses(self) -> dict[int, Status]:
        assert len(self.told) == len(dict(self.told)), "called back twice"
        return dict(self.told)


def wait_for(what, limit_s: float = 20.0) -> None:
    end_s = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < end_s, "it did not happen in time"
        time.sleep(0.01)


def test_what_is_sent_arrives_and_what_is_answered_too():
    with serving() as address, transport(address, LARGE, SMALL) as over:
        for number, expected in enumerate((LARGE, SMALL, LARGE)):
            assert np.array_equal(over.infer(number, 20.0)["output"], expected)


def test_large_and_small_requests_are_answered_side_by_side():
    asked = Answers()
    with serving() as address, transport(address, LARGE, *[SMALL] * 9) as over:
        for number in range(100):
            asked.send(over, number)
        wait_for(lambda: not over.in_flight)
    assert asked.statuses == dict.fromkeys(range(100), Status.OK)


def test_over_tls_large_and_small_requests_arrive_with_their_headers(tmp_path):
    metadata, asked = set(), Answers()

    def seen(request, context):
        metadata.update(context.invocation_metadata())
        return echo(request, context)

    files = make_certificate(tmp_path)
    access = Access(files[1].read_text(), (Header("Authorization", "Bearer ", "s3cret"),))
    with (
        serving(seen, tls=files) as address,
        transport(address, LARGE, *[SMALL] * 4, access=access) as over,
    ):
        assert np.array_equal(over.infer(0, 20.0)["output"], LARGE)
        for number in range(50):
            asked.send(over, number)
        wait_for(lambda: not over.in_flight)
    assert asked.statuses == dict.fromkeys(range(50), Status.OK)
    assert ("authorization", "Bearer s3cret") in metadata


def test_a_server_whose_certificate_nobody_signed_gets_no_header(tmp_path, monkeypatch):
    monkeypatch.setattr("perseus.traffic.grpc_transport.CONNECT_S", 0.1)
    (tmp_path / "other").mkdir()
    files, (_, other) = make_certificate(tmp_path), make_certificate(tmp_path / "other")
    access = Access(other.read_text(), (Header("authorization", "Bearer ", "s3cret"),))
    with (
        serving(tls=files) as address,
        pytest.raises(RequestFailedError, match="certificate verify failed"),
    ):
        transport(address, access=access).__enter__()


def test_a_server_that_takes_two_at_a_time_gets_the_others_later():
    at_once, most = [], []

    def slow(request, context):
        at_once.append(1)
        most.append(len(at_once))
        time.sleep(0.01)
        at_once.pop()
        return echo(request, context)

    asked = Answers()
    with serving(slow, max_concurrent_streams=2) as address, transport(address) as over:
        over.infer(0, 5.0)
        for number in range(30):
            asked.send(over, number)
        wait_for(lambda: not over.in_flight)
    assert asked.statuses == dict.fromkeys(range(30), Status.OK)
    assert max(most) <= 2


def test_a_server_that_ends_connections_by_and_by_gets_new_ones():
    """The server ends each connection after 200 ms, as behind a proxy. No request is lost."""
    asked, peers = Answers(), set()

    def seen(request, context):
        peers.add(context.peer())
        return echo(request, context)

    ages = {"max_connection_age_ms": 200, "max_connection_age_grace_ms": 5000}
    with serving(seen, **ages) as address, transport(address) as over:
        for number in range(150):
            asked.send(over, number)
            time.sleep(0.01)
        wait_for(lambda: not over.in_flight)
    assert asked.statuses == dict.fromkeys(range(150), Status.OK)
    assert len(peers) > 2


def test_what_a_server_had_when_it_went_is_refused_and_the_next_server_is_asked():
    asked, held, waited_s = Answers(), threading.Event(), list[float]()

    def holding(request, context):
        held.wait(10)
        return echo(request, context)

    with serving(holding) as address:
        over = transport(address)
        over.__enter__()
        for number in range(5):
            asked.send(over, number)
        time.sleep(0.1)
    held.set()
    wait_for(lambda: not over.in_flight)
    assert asked.statuses == dict.fromkeys(range(5), Status.REFUSED)
    for number in range(5, 15):  # the client refuses at once, without an attempt to connect
        start_s = time.monotonic()
        asked.send(over, number)
        wait_for(lambda: not over.in_flight)
        waited_s.append(time.monotonic() - start_s)
        assert asked.statuses[number] is Status.REFUSED
    assert min(waited_s) < http2_client.AGAIN_S / 2
    assert all(message.startswith("UNAVAILABLE: ") for message in asked.messages)
    with serving(port=int(address.rpartition(":")[2])):
        wait_for(lambda: _answers(over))
    over.__exit__()


def _answers(over: GrpcTransport) -> bool:
    try:
        over.infer(0, 1.0)
    except RequestFailedError:
        return False
    return True


def test_a_port_that_nobody_serves_any_more_refuses_at_once():
    """A port can stay open without a server.

    For example, a server was killed, but its child process still has the socket.
    """
    asked = Answers()
    with serving() as address:
        over = transport(address)
        over.__enter__()
        over.infer(0, 5.0)
    with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
        wait_for(lambda: over._client._lost)
        time.sleep(2 * http2_client.AGAIN_S)  # now the client tries to connect
        for number in range(5):
            asked.send(over, number)
            wait_for(lambda: not over.in_flight, http2_client.CONNECT_S / 2)
    assert asked.statuses == dict.fromkeys(range(5), Status.REFUSED)
    over.__exit__()


def test_a_closed_loop_goes_on_when_its_server_is_lost_and_comes_again():
    """A client may send a new request in the callback of a lost request.

    The next server then receives the whole new request.
    """
    image = np.zeros((1, 3, 100, 100), np.float32)
    statuses: list[Status] = []

    def next_one(done_ns: int, status: Status, message: str) -> None:
        statuses.append(status)
        if not over_now.is_set():
            over.send(next(numbers), next_one)

    numbers, over_now = itertools.count(), threading.Event()
    with serving() as address:
        over = transport(address, image, timeout_s=3.0)
        over.__enter__()
        for _ in range(8):
            over.send(next(numbers), next_one)
        wait_for(lambda: len(statuses) > 50)
    port = int(address.rpartition(":")[2])
    for _ in range(3):
        wait_for(lambda: statuses[-1] is Status.REFUSED)
        with serving(port=port):
            wait_for(lambda: statuses[-50:] == [Status.OK] * 50)
    over_now.set()
    wait_for(lambda: not over.in_flight)
    over.__exit__()
    assert {Status.OK, Status.REFUSED} <= set(statuses)
    assert not {Status.TIMEOUT, Status.PENDING} & set(statuses)


def test_what_is_under_way_is_cancelled_once():
    asked, held = Answers(), threading.Event()

    def holding(request, context):
        held.wait(10)
        return echo(request, context)

    with serving(holding) as address, transport(address) as over:
        for number in range(20):
            asked.send(over, number)
        over.cancel()
        assert asked.statuses == dict.fromkeys(range(20), Status.PENDING)
        held.set()
        assert _answers(over)
    assert not over.in_flight


def test_what_takes_too_long_times_out_and_nothing_else():
    def slow(request, context):
        time.sleep(1.0 if len(request) > 1000 else 0.0)
        return echo(request, context)

    asked, image = Answers(), np.zeros((1, 3, 20, 20), np.float32)
    with serving(slow) as address, transport(address, image, SMALL, timeout_s=0.3) as over:
        for number in range(4):
            asked.send(over, number)
        wait_for(lambda: not over.in_flight)
        with pytest.raises(RequestFailedError, match="DEADLINE_EXCEEDED: no response in time"):
            over.infer(0, 0.1)
    assert asked.statuses == {
        0: Status.TIMEOUT,
        1: Status.OK,
        2: Status.TIMEOUT,
        3: Status.OK,
    }


def test_answers_of_a_server_are_told_with_their_code_and_their_words():
    def failing(request, context):
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "zu groß: 100 %")

    with (
        serving(failing) as address,
        transport(address) as over,
        pytest.raises(RequestFailedError, match=r"^RESOURCE_EXHAUSTED: zu groß: 100 %$"),
    ):
        over.infer(0, 5.0)


def test_a_server_of_something_else_is_said(monkeypatch):
    monkeypatch.setattr("perseus.traffic.grpc_transport.CONNECT_S", 0.1)
    text = "the server sent a frame of 4740180 bytes"  # the bytes "HTT", read as a number
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"

        def speak_http_1() -> None:
            with contextlib.suppress(OSError):  # the test has ended
                while True:
                    connection, _ = listening.accept()
                    with connection:
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=speak_http_1, daemon=True).start()
        with pytest.raises(RequestFailedError, match=f"no gRPC connection within 5 s: {text}"):
            transport(address).__enter__()


def test_a_buffer_of_the_system_that_is_full_is_written_on_later(monkeypatch):
    """Each call of `sendmsg` may write a whole request, a part of the request, or nothing."""
    sendmsg, turns = socket.socket.sendmsg, itertools.count()

    def little(self, buffers, *rest):
        if next(turns) % 2:
            raise BlockingIOError
        return sendmsg(self, [b"".join(buffers)[:1000]], *rest)

    monkeypatch.setattr(http2_client.socket.socket, "sendmsg", little, raising=False)
    # The periodic checks come too late to write the rest of a request.
    monkeypatch.setattr(http2_client, "LOOK_S", 60.0)
    monkeypatch.setattr(http2_client, "IDLE_S", 60.0)
    image, asked = np.arange(3 * 64 * 64, dtype=np.float32).reshape(1, 3, 64, 64), Answers()
    with serving() as address, transport(address, image) as over:
        for number in range(3):
            asked.send(over, number)
        wait_for(lambda: not over.in_flight, 10.0)
    assert asked.statuses == dict.fromkeys(range(3), Status.OK)


@contextmanager
def greeting(then, port: int = 0) -> Iterator[str]:
    """Yield the address of a server with large flow-control windows.

    The server calls `then` with the connection, and then closes the connection.
    """
    settings = bytes([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4]) + (2**31 - 1).to_bytes(4, "big")
    window = bytes([0, 0, 4, 8, 0, 0, 0, 0, 0]) + (2**30).to_bytes(4, "big")
    with socket.create_server(("127.0.0.1", port)) as listening:

        def accept() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(settings + window)
                then(connection)

        thread = threading.Thread(target=accept)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


def test_what_the_system_does_not_take_at_once_goes_out_when_it_has_room(monkeypatch):
    # The periodic checks come too late to write the rest of a request.
    monkeypatch.setattr(http2_client, "LOOK_S", 60.0)
    monkeypatch.setattr(http2_client, "IDLE_S", 60.0)
    received: list[int] = []

    def read_later(connection: socket.socket) -> None:
        wait_for(lambda: over.in_flight)
        time.sleep(0.1)
        connection.settimeout(5.0)
        while sum(received) < HUGE.nbytes:
            received.append(len(connection.recv(2**20)))

    with greeting(read_later) as address:
        over = transport(address, HUGE)
        over.__enter__()
        time.sleep(0.1)  # now the thread of the transport waits
        over.send(0, lambda *answer: None)
    wait_for(lambda: not over.in_flight)
    over.__exit__()
    assert sum(received) >= HUGE.nbytes


def test_what_was_on_its_way_to_a_server_that_is_lost_reaches_no_other():
    asked = Answers()
    with greeting(lambda connection: wait_for(lambda: over.in_flight)) as address:
        over = transport(address, HUGE, SMALL)
        over.__enter__()
        time.sleep(0.1)
        asked.send(over, 0)
    wait_for(lambda: not over.in_flight)
    assert asked.statuses == {0: Status.REFUSED}
    received: list[int] = []

    def read(connection: socket.socket) -> None:
        connection.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while sum(received) < 100_000:
                received.append(len(connection.recv(2**16)))

    with greeting(read, port=int(address.rpartition(":")[2])):
        pass
    over.__exit__()
    assert 0 < sum(received) < 1000  # only the beginning of a connection


@pytest.mark.parametrize(
    ("fields", "parts", "code", "message"),
    [
        ({"grpc-status": "0"}, [b"\0\0\0\0\2o", b"k"], grpc.StatusCode.OK, ""),
        (
            {"grpc-status": "0"},
            [b"\0\0\0\0\2o"],
            grpc.StatusCode.INTERNAL,
            "not one complete message",
        ),
        (
            {"grpc-status": "0"},
            [b"\1\0\0\0\1o"],
            grpc.StatusCode.INTERNAL,
            "not one complete message",
        ),
        ({"grpc-status": "0"}, [], grpc.StatusCode.INTERNAL, "not one complete message"),
        ({":status": "503"}, [b"busy"], grpc.StatusCode.UNAVAILABLE, "HTTP 503"),
        ({":status": "404"}, [b"what?"], grpc.StatusCode.UNKNOWN, "HTTP 404"),
        ({":status": "200", "grpc-status": "77"}, [], grpc.StatusCode.UNKNOWN, ""),
    ],
)
def test_an_answer_is_what_its_trailers_and_its_message_say(fields, parts, code, message):
    call = Call(b"", memoryview(b"body"))
    call.fields, call.parts = fields, parts
    found, output = outcome(call, End.ANSWERED, "")
    assert found is code and message in output


def response_with(datatype: str, field: str, values: list) -> bytes:
    response = service_pb2.ModelInferResponse(model_name="tenant")
    output = response.outputs.add(name="output", datatype=datatype, shape=[2, 1])
    getattr(output.contents, field).extend(values)
    return response.SerializeToString()


@pytest.mark.parametrize(
    ("datatype", "field", "values"),
    [
        ("BOOL", "bool_contents", [True, False]),
        ("INT8", "int_contents", [-128, 127]),
        ("INT16", "int_contents", [-7, 300]),
        ("INT32", "int_contents", [-7, 2**31 - 1]),
        ("INT64", "int64_contents", [-7, 2**63 - 1]),
        ("UINT8", "uint_contents", [0, 255]),
        ("UINT16", "uint_contents", [0, 300]),
        ("UINT32", "uint_contents", [0, 2**32 - 1]),
        ("UINT64", "uint64_contents", [0, 2**64 - 1]),
        ("FP32", "fp32_contents", [0.5, -2.0]),
        ("FP64", "fp64_contents", [0.1, -2.0]),
    ],
)
def test_values_of_a_response_may_have_their_own_field_for_each_type(datatype, field, values):
    output = decode(response_with(datatype, field, values))["output"]
    assert output.dtype == DTYPES[datatype] and output.tolist() == [[each] for each in values]


@pytest.mark.parametrize(
    ("datatype", "field", "values"),
    [
        ("FP32", "fp32_contents", [0.5]),
        ("FP32", "fp64_contents", [0.5, -2.0]),
        ("FP16", "fp32_contents", [0.5, -2.0]),
        ("INT8", "int_contents", [0, 300]),
        ("BYTES", "bytes_contents", [b"a", b"b"]),
        ("FP32", "fp32_contents", []),
    ],
    ids=["too few", "other field", "no field", "too large", "no number", "none"],
)
def test_values_that_do_not_fit_their_tensor_are_refused(datatype, field, values):
    with pytest.raises(RequestFailedError, match="the response does not come from a model"):
        decode(response_with(datatype, field, values))
