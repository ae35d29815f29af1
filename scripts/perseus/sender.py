"""The sender: the process that sends a tenant's requests, driven over a pipe by `client.Client`.

Every send happens at an absolute time drawn beforehand, whatever became of the requests before it.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

import grpc
import numpy as np
from numpy.typing import NDArray

from perseus.window import Requests, Status

METHOD = "/inference.GRPCInferenceService/ModelInfer"
CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
]
GIB = 2**30


@dataclass(frozen=True)
class Snapshot:
    """The state of a window in a client: the requests intended so far and the CPU time used."""

    requests: Requests
    cpu_s: float


@dataclass(frozen=True)
class Result:
    """A window that has ended: the requests intended until then, and the first error's message.

    `idle` tells that the server had worked off its queue.
    """

    requests: Requests
    error: str
    idle: bool


def main(pipe: Connection) -> None:
    """The child: this thread sends, a second one obeys the parent, gRPC's own takes the answers."""
    # An interrupt of the terminal reaches this process too; the parent decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    address, payload, cores, timeout_s = pipe.recv()
    os.sched_setaffinity(0, cores)
    # The sender must get the interpreter within its send-lag budget, not after the default 5 ms.
    sys.setswitchinterval(0.0005)
    _run_promptly()
    with grpc.insecure_channel(address, CHANNEL_OPTIONS) as channel:
        grpc.channel_ready_future(channel).result(timeout=5)
        infer = channel.unary_unary(METHOD)  # bytes in, bytes out
        windows: queue.SimpleQueue[_Window | None] = queue.SimpleQueue()
        control = threading.Thread(
            target=_answer, args=(pipe, windows, partial(infer, payload)), daemon=True
        )
        control.start()
        limit = max(64, min(4096, GIB // len(payload)))
        while (window := windows.get()) is not None:
            _send(window, partial(infer.future, payload, timeout=timeout_s), limit)


def _run_promptly() -> None:
    """Let this process run as soon as it has something to do, where the system permits it.

    It needs little CPU time, but on a shared core one that wakes up waits for the time slices of
    others (3 ms each on current kernels): of other tenants' clients, or of whatever else runs.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        return


class _Window:
    """The requests of one window; written by the sender and by gRPC's callback thread."""

    def __init__(self, intended_ns: NDArray[np.int64]) -> None:
        n = len(intended_ns)
        self.intended_ns = intended_ns
        self.sent_ns = np.zeros(n, np.int64)
        self.done_ns = np.zeros(n, np.int64)
        self.status = np.zeros(n, np.uint8)
        self.error = ""
        self.calls: dict[int, grpc.Future] = {}
        self.stopped = threading.Event()
        self.sender_done = threading.Event()
        self.cpu_start_s = time.process_time()

    def requests(self, until_ns: int) -> Requests:
        n = int(np.searchsorted(self.intended_ns, until_ns))
        # The status first: it is written last, so that an answer never lacks its time.
        status = self.status[:n].copy()
        return Requests(
            self.intended_ns[:n], self.sent_ns[:n].copy(), self.done_ns[:n].copy(), status
        )


def _send(window: _Window, call: partial[grpc.Future], limit: int) -> None:
    """Send each request at its intended time; beyond `limit` in flight the window is spoilt."""
    for i, intended_ns in enumerate(window.intended_ns.tolist()):
        while (wait_ns := intended_ns - time.monotonic_ns()) > 0:
            if window.stopped.is_set():
                break
            time.sleep(min(wait_ns, 50_000_000) / 1e9)
        if window.stopped.is_set():
            break
        if len(window.calls) >= limit:
            window.status[i] = Status.UNSENT
            continue
        window.sent_ns[i] = time.monotonic_ns()
        future = call()
        window.calls[i] = future
        future.add_done_callback(partial(_done, window, i))
    window.sender_done.set()


def _done(window: _Window, i: int, future: grpc.Future) -> None:
    now_ns = time.monotonic_ns()
    code = future.code()
    if code is not grpc.StatusCode.CANCELLED:
        window.done_ns[i] = now_ns
        window.status[i] = _STATUS.get(code, Status.ERROR)
        if code is not grpc.StatusCode.OK and not window.error:
            window.error = f"{code.name}: {future.details()}"
    window.calls.pop(i, None)


_STATUS = {
    grpc.StatusCode.OK: Status.OK,
    grpc.StatusCode.DEADLINE_EXCEEDED: Status.TIMEOUT,
    grpc.StatusCode.UNAVAILABLE: Status.REFUSED,
}


def _answer(
    pipe: Connection, windows: queue.SimpleQueue[_Window | None], infer: partial[bytes]
) -> None:
    """Serve the parent's commands until it closes the pipe or is gone."""
    window = _Window(np.empty(0, np.int64))
    pipe.send("ready")
    try:
        while True:
            command, value = pipe.recv()
            if command == "start":
                window = _Window(value)
                windows.put(window)
            elif command == "look":
                cpu_s = time.process_time() - window.cpu_start_s
                pipe.send(Snapshot(window.requests(value), cpu_s))
            else:
                until_ns = time.monotonic_ns()
                idle = _drain(window, infer, *value)
                pipe.send(Result(window.requests(until_ns), window.error, idle))
    except (EOFError, OSError):
        window.stopped.set()
        windows.put(None)


def _drain(window: _Window, infer: partial[bytes], patience_s: float, idle_s: float) -> bool:
    """Stop sending, wait for answers, cancel the rest; whether the server is idle then."""
    window.stopped.set()
    window.sender_done.wait()
    end_s = time.monotonic() + patience_s
    while window.calls and time.monotonic() < end_s:
        time.sleep(0.005)
    cancelled = list(window.calls.values())
    for call in cancelled:
        call.cancel()
    if cancelled:
        # The server may still work on what was cancelled; an answer to one more request says that
        # the queue before it is gone.
        try:
            infer(timeout=idle_s)
        except grpc.RpcError:
            return False
    return True
