"""A small inference server with a known service time in the process of the test."""

from __future__ import annotations

import json
import threading
import time
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from tritonclient.grpc import service_pb2

from perseus.traffic.grpc_transport import METHOD
from perseus.traffic.http_transport import HEADER_LENGTH

GRPC_ERRORS = {"error": grpc.StatusCode.INTERNAL, "refused": grpc.StatusCode.UNAVAILABLE}
HTTP_ERRORS = {"error": 500, "refused": 503}


class FakeServer:
    """A server that answers one request at a time after `service_s`, or with errors.

    `fail` is "", "error" or "refused"; "refused" is the error of a server with a full queue.
    """

    protocol: str
    address: str

    def __init__(self) -> None:
        self.at_once = 0
        self._counting = threading.Lock()
        self._worker = futures.ThreadPoolExecutor(1)  # first come, first served, as in Triton
        self.reset()

    def reset(self) -> None:
        self.service_s = 0.005
        self.fail = ""
        self.served = 0
        self.most_at_once = 0
        self.received: list[bytes] = []

    def serve(self, request: bytes) -> None:
        """Work on each request, even if its client has given up, as Triton does."""
        with self._counting:
            self.received.append(request)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self._worker.submit(self._work).result()
        with self._counting:
            self.at_once -= 1

    def _work(self) -> None:
        time.sleep(self.service_s)
        self.served += 1

    def stop(self) -> None:
        raise NotImplementedError


class FakeGrpcServer(FakeServer):
    protocol = "grpc"

    def __init__(self) -> None:
        super().__init__()
        _, service, method = METHOD.split("/")
        handler = grpc.unary_unary_rpc_method_handler(self._infer)
        self._server = grpc.server(futures.ThreadPoolExecutor(200))
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, {method: handler})]
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _infer(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if self.fail:
            context.abort(GRPC_ERRORS[self.fail], "the model is on fire")
        self.serve(request)
        answer = service_pb2.ModelInferResponse(model_name="tenant")
        answer.outputs.add(name="output", datatype="FP32", shape=[1, 1])
        answer.raw_output_contents.append(bytes(4))
        return answer.SerializeToString()

    def stop(self) -> None:
        self._server.stop(0)


class FakeHttpServer(FakeServer):
    protocol = "http"

    def __init__(self) -> None:
        super().__init__()
        self.headers: list[dict[str, str]] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                self._reply(200, b"")

            def do_POST(self) -> None:
                request = self.rfile.read(int(self.headers["Content-Length"]))
                fake.headers.append(dict(self.headers))
                if fake.fail:
                    return self._reply(HTTP_ERRORS[fake.fail], b"the model is on fire")
                fake.serve(request)
                output = {"name": "output", "datatype": "FP32", "shape": [1, 1]}
                head = json.dumps({"outputs": [output]}).encode()
                return self._reply(200, head + bytes(4), len(head))

            def _reply(self, status: int, body: bytes, json_bytes: int | None = None) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if json_bytes is not None:
                    self.send_header(HEADER_LENGTH, str(json_bytes))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Keep the output of the tests free of access logs."""

        self._server = _Listener(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 200

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self._connections = []

    def process_request(self, request, client_address) -> None:
        self._connections.append(request)
        super().process_request(request, client_address)

    def hang_up(self) -> None:
        for connection in self._connections:
            self.shutdown_request(connection)
