"""A small inference server in the test's own process, with a known service time."""

from __future__ import annotations

import threading
import time
from concurrent import futures

import grpc
from tritonclient.grpc import service_pb2

from perseus.transport_grpc import METHOD


def _answer() -> bytes:
    answer = service_pb2.ModelInferResponse(model_name="tenant")
    answer.outputs.add(name="output", datatype="FP32", shape=[1, 1])
    answer.raw_output_contents.append(bytes(4))
    return answer.SerializeToString()


class FakeServer:
    """Answers ModelInfer after `service_s`, one request at a time; or with errors."""

    def __init__(self) -> None:
        self.service_s = 0.005
        self.fail = False
        self.served = 0
        self.most_at_once = 0
        self.received: list[bytes] = []
        self._at_once = 0
        self._lock = threading.Lock()
        _, service, method = METHOD.split("/")
        handler = grpc.unary_unary_rpc_method_handler(self._infer)
        self._server = grpc.server(futures.ThreadPoolExecutor(200))
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(service, {method: handler})]
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _infer(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self.received.append(request)
        if self.fail:
            context.abort(grpc.StatusCode.INTERNAL, "the model is on fire")
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        with self._lock:
            if context.is_active():
                time.sleep(self.service_s)
                self.served += 1
            self._at_once -= 1
        return _answer()

    def stop(self) -> None:
        self._server.stop(0)
