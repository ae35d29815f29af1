"""Tests that Perseus takes no number from invalid statistics, metrics and responses of a server."""

import http.server
import threading

import numpy as np
import pytest
from tritonclient.grpc import service_pb2

from perseus.measurement.decomposition import decompose
from perseus.measurement.triton_metrics import parse_metrics
from perseus.serving.access import Access, Header
from perseus.serving.failures import ServerError
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import ServerTimes, server_times
from perseus.traffic import grpc_transport, http_transport
from perseus.traffic.requests import Requests, Status
from perseus.traffic.transport import RequestFailedError

GOOD = (
    b'{"model_stats": [{"version": "1", "inference_stats": {"success": {"count": 3},'
    b' "queue": {"ns": 1}, "compute_input": {"ns": 2}, "compute_infer": {"ns": 3},'
    b' "compute_output": {"ns": 4}}}]}'
)


@pytest.fixture
def statistics():
    """Return a function that reads the statistics of a server that responds with these bytes."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.wfile.write(self.server.answer)

        def log_message(self, *args):
            """Suppress the log of the server."""

    page = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=page.serve_forever, args=(0.05,), daemon=True).start()
    access = Access(headers=(Header("authorization", "", "s3cret"),))
    server = RunningServer("", f"127.0.0.1:{page.server_port}", "", None, access)

    def ask(body: bytes, head: bytes = b"HTTP/1.0 200 OK\r\n\r\n") -> ServerTimes:
        page.answer = head + body
        return server_times(server, "tenant", timeout_s=2)

    yield ask
    page.shutdown()
    page.server_close()


def test_statistics_are_read(statistics):
    assert statistics(GOOD) == ServerTimes(3, 1, 2, 3, 4)
    cached = GOOD.replace(b'"queue"', b'"cache_hit": {"count": 2}, "queue"')
    assert statistics(cached) == ServerTimes(3, 1, 2, 3, 4, cache_hits=2)


def test_statistics_are_those_of_the_version_that_answers(statistics):
    old, new = (GOOD.replace(b'"1"', b'"%d"' % n).replace(b": 3", b": %d" % n) for n in (9, 10))
    of_both = old.replace(b"]}", b", ") + new.removeprefix(b'{"model_stats": [')
    assert statistics(of_both).requests == 10


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>please log in</html>",
        b"[]",
        b"null",
        b'{"model_stats": []}',
        b'{"model_stats": [{"inference_stats": null}]}',
        GOOD.replace(b"3}", b'"many"}'),
        GOOD.replace(b'"queue"', b'"cache_hit": null, "queue"'),
        GOOD.replace(b"3}", b"1e999}"),
        GOOD.replace(b"3}", b"NaN}"),
        GOOD.replace(b"3}", b"[]}"),
        b"\xff\xfe\x00",
        b"[" * 100_000,
    ],
)
def test_garbage_for_statistics_is_an_error_of_the_server(statistics, body):
    with pytest.raises(ServerError, match="the server sent no statistics of tenant"):
        statistics(body)


def test_an_answer_that_is_not_http_is_an_error_that_shows_no_token(statistics):
    with pytest.raises(ServerError, match="no statistics of tenant") as caught:
        statistics(b"s3cret", head=b"SSH-2.0-s3cret\r\n")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "after",
    [
        ServerTimes(15, -5, 0, 70_000_000, 0),
        ServerTimes(15, 0, 0, 10**12, 0),
        ServerTimes(5, 0, 0, 0, 0),
    ],
    ids=["counters that go back", "more time than passed", "nothing served"],
)
def test_impossible_times_of_the_server_are_no_times(after):
    n = 10
    part = Requests(
        intended_ns=np.arange(n) * 10**9,
        sent_ns=np.arange(n) * 10**9,
        done_ns=np.arange(n) * 10**9 + 12_000_000,
        status=np.full(n, Status.OK, np.uint8),
    )
    found = decompose(ServerTimes(5, 0, 0, 0, 0), after, part)
    assert np.isnan([found.queue_ms, found.compute_ms, found.client_ms]).all()


def test_metrics_that_are_no_numbers_are_left_out():
    text = (
        "# TYPE nv_cpu_utilization gauge\nnv_cpu_utilization NaN\n"
        "# TYPE nv_gpu_utilization gauge\n"
        'nv_gpu_utilization{gpu_uuid="a"} 0.25\nnv_gpu_utilization{gpu_uuid="b"} 0.5\n'
        "# TYPE nv_gpu_power_usage gauge\nnv_gpu_power_usage +Inf\n"
    )
    assert parse_metrics(text).gauges == {("nv_gpu_utilization", None): 0.75}


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff\xff",
        b"",
        service_pb2.ModelInferResponse(model_name="tenant").SerializeToString(),
        service_pb2.ModelInferResponse(
            outputs=[{"name": "output", "datatype": "FP32", "shape": [2, 1000]}],
            raw_output_contents=[bytes(4)],
        ).SerializeToString(),
        service_pb2.ModelInferResponse(
            outputs=[{"name": "output", "datatype": "FP32", "shape": [1]}],
            raw_output_contents=[bytes(3)],
        ).SerializeToString(),
        service_pb2.ModelInferResponse(
            outputs=[{"name": "output", "datatype": "FP31", "shape": [1]}],
            raw_output_contents=[bytes(4)],
        ).SerializeToString(),
        service_pb2.ModelInferResponse(
            outputs=[{"name": name, "datatype": "FP32", "shape": [1]} for name in "ab"],
            raw_output_contents=[bytes(4)],
        ).SerializeToString(),
    ],
)
def test_an_answer_over_grpc_that_is_none(answer):
    with pytest.raises(RequestFailedError, match="the response does not come from a model"):
        grpc_transport.decode(answer)


def of_output(datatype, shape, size_bytes):
    """Return the body of a response over HTTP, and the length of its JSON."""
    one = f'{{"name": "output", "datatype": "{datatype}", "shape": {shape}}}'
    head = f'{{"outputs": [{one}]}}'.encode()
    return head + bytes(size_bytes), len(head)


@pytest.mark.parametrize(
    ("body", "json_bytes"),
    [
        (b"<html>", 6),
        (b"{}", 2),
        (b'{"outputs": []}', 15),
        of_output("FP32", "[1, 1000]", 4),
        of_output("FP32", '"all"', 4),
        of_output("FP32", "[1]", 8),
        of_output("FP32", "[-1]", 8),
        of_output("FP31", "[1]", 4),
        (b"3", 1),
        (b"[" * 100_000, 100_000),
    ],
)
def test_an_answer_over_http_that_is_none(body, json_bytes):
    reply = http_transport.Reply(1, Status.OK, "", body, json_bytes)
    with pytest.raises(RequestFailedError, match="the response does not come from a model"):
        http_transport.decode(reply)
