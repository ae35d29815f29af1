"""The metrics endpoint of Triton 2.51 with one GPU and two models."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

MODELS = {"a": 20.0, "b": 5.0}
"""The request rate of each model, in requests/s."""

PER_REQUEST = {
    "nv_inference_request_success": 1,
    "nv_inference_count": 4,
    "nv_inference_exec_count": 0.5,
    "nv_inference_request_duration_us": 9_000,
    "nv_inference_queue_duration_us": 2_000,
    "nv_inference_compute_input_duration_us": 500,
    "nv_inference_compute_infer_duration_us": 6_000,
    "nv_inference_compute_output_duration_us": 500,
}
"""The increase of each counter per request."""

FAILED = "nv_inference_request_failure"
PENDING = "nv_inference_pending_request_count"
GPU = {
    "nv_gpu_utilization": 0.5,
    "nv_gpu_memory_total_bytes": 8e9,
    "nv_gpu_memory_used_bytes": 2e9,
    "nv_gpu_power_usage": 60.0,
    "nv_gpu_power_limit": 70.0,
}
HOST = {
    "nv_cpu_utilization": 0.4,
    "nv_cpu_memory_total_bytes": 16e9,
    "nv_cpu_memory_used_bytes": 4e9,
}
NAMES = {*PER_REQUEST, FAILED, PENDING, *GPU, *HOST}


def text(seconds: float) -> str:
    """Return the metrics at this time after the start."""

    def lines() -> Iterator[str]:
        for name, step in PER_REQUEST.items():
            yield f"# HELP {name} what it is\n# TYPE {name} counter"
            for model, rate in MODELS.items():
                yield f'{name}{{model="{model}",version="1"}} {rate * step * seconds}'
        yield f"# HELP {FAILED} what it is\n# TYPE {FAILED} counter"
        for model in MODELS:
            yield f'{FAILED}{{model="{model}",reason="OTHER",version="1"}} 0'
        yield f"# HELP {PENDING} what it is\n# TYPE {PENDING} gauge"
        for model in MODELS:
            yield f'{PENDING}{{model="{model}",version="1"}} 3'
        for values, labels in ((GPU, '{gpu_uuid="GPU-1"}'), (HOST, "")):
            for name, value in values.items():
                yield f"# HELP {name} what it is\n# TYPE {name} gauge\n{name}{labels} {value}"

    return "".join(f"{line}\n" for line in lines())


@contextmanager
def serving() -> Iterator[str]:
    """Serve the metrics; yield the URL."""
    start_s = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = text(time.monotonic() - start_s).encode()
            self.send_response(200 if self.path == "/metrics" else 400)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Keep the output of the tests free of access logs."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics"
        finally:
            server.shutdown()
            thread.join()
