"""The program of a client process, which sends requests of a tenant. `client.Client` starts this
process, and controls it over a pipe."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

from perseus.traffic.connect import connect
from perseus.traffic.loops import ClosedLoop, LoadLoop, OpenLoop, silent_s
from perseus.traffic.requests import Requests, Status
from perseus.traffic.route import Route
from perseus.traffic.transport import RequestFailedError, Transport

GIB = 2**30
PROBE_S = 0.1  # seconds between two checks whether the server accepts requests again


@dataclass(frozen=True)
class Setup:
    """The settings of a client process: the route of its requests, and the cores on which it may
    run."""

    route: Route
    cores: Sequence[int]


@dataclass(frozen=True)
class Snapshot:
    """The state of a window at one moment.

    `requests` contains all requests whose intended send time has passed. `cpu_s` contains, for each
    client process, its CPU time in seconds since the start of the window.
    """

    requests: Requests
    cpu_s: tuple[float, ...]


@dataclass(frozen=True)
class Result:
    """The result of an ended window: its requests, and the first message of each kind of error.

    `idle` says whether the server has processed all requests in its queue. `cpu_s` is the CPU time
    of the client processes in seconds, from the start of the window until the client has stopped
    waiting for the server.
    """

    requests: Requests
    errors: dict[str, str]
    idle: bool
    cpu_s: float


def main(pipe: Connection) -> None:
    """Run the client process until its parent closes the pipe or ends.

    The main thread sends requests. A second thread executes the parent's commands. Threads of the
    transport receive responses. If the transport cannot connect, the client process sends the
    reason to its parent, and ends.
    """
    # A batch scheduler may send a signal to all processes of a job. This process ignores the
    # signal, because only the parent ends this process.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    setup: Setup = pipe.recv()
    os.sched_setaffinity(0, setup.cores)
    # With Python's default of 5 ms, other threads of this process would delay sends by more than
    # the allowed send lag.
    sys.setswitchinterval(0.0005)
    prompt = _run_promptly()
    with ExitStack() as stack:
        try:
            transport = stack.enter_context(connect(setup.route))
        except RequestFailedError as error:
            pipe.send(error)
            return
        loops: queue.SimpleQueue[LoadLoop | None] = queue.SimpleQueue()
        arguments = (pipe, loops, transport, setup.route, prompt)
        threading.Thread(target=_obey, args=arguments, daemon=True).start()
        while (loop := loops.get()) is not None:
            loop.offer(transport)


def _run_promptly() -> bool:
    """Ask the system to run this process before ordinary processes (SCHED_RR). Return whether the
    system grants this priority.

    Without this priority, a process that must send a request first waits for the time slices of
    other processes on its core, for example of other tenants' clients. A time slice takes 3 ms on
    current kernels.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:  # without the permission, or in a sandbox without real-time scheduling
        return False
    return True


def _obey(
    pipe: Connection,
    loops: queue.SimpleQueue[LoadLoop | None],
    transport: Transport,
    route: Route,
    prompt: bool,
) -> None:
    """Execute the parent's commands until the parent closes the pipe or ends.

    For each window, the function puts a loop into `loops`. The main thread takes this loop and runs
    it. After the last command, the function puts None into `loops`, and the main thread ends.
    """
    largest = max(sum(each.size_bytes for each in inputs) for inputs in route.inputs)
    limit = min(transport.most_in_flight, max(64, GIB // max(1, largest)))
    kinds: dict[str, Callable[..., LoadLoop]] = {
        "open": partial(OpenLoop, limit),
        "closed": ClosedLoop,
    }
    loop = kinds["open"]([])
    loops.put(loop)
    cpu_start_s = time.process_time()
    try:
        pipe.send(prompt)
        while True:
            command, *values = pipe.recv()
            if command == "look":
                cpu_s = time.process_time() - cpu_start_s
                pipe.send(Snapshot(loop.requests(*values), (cpu_s,)))
            elif command == "silence":
                # Look only at requests of the last two timeouts, because all older requests have
                # ended. In a long window, a copy of all requests would take so long that the main
                # thread would send late.
                now_ns = time.monotonic_ns()
                recent_ns = now_ns - round(2e9 * route.timeout_s)
                pipe.send(silent_s(loop.requests(now_ns, recent_ns), now_ns))
            elif command == "stop":
                until_ns = time.monotonic_ns()
                idle = _drain(loop, transport, *values)
                cpu_s = time.process_time() - cpu_start_s
                pipe.send(Result(loop.requests(until_ns), loop.errors, idle, cpu_s))
            else:
                loop = kinds[command](*values)
                cpu_start_s = time.process_time()
                loops.put(loop)
    except (EOFError, OSError):
        pass  # the parent has ended or closed the pipe
    finally:
        loop.stop()
        loops.put(None)


def _drain(loop: LoadLoop, transport: Transport, patience_s: float, idle_s: float) -> bool:
    """Stop sending, wait up to `patience_s` seconds for responses, and cancel the requests without
    a response. Return whether the server's queue becomes empty within `idle_s` more seconds."""
    loop.stop()
    end_s = time.monotonic() + patience_s
    while transport.in_flight and time.monotonic() < end_s:
        time.sleep(0.005)
    given_up = bool(transport.in_flight)
    transport.cancel()
    if not (given_up or loop.requests(time.monotonic_ns()).count(Status.TIMEOUT)):
        return True
    # The server may still work on cancelled or timed-out requests. If the server answers one more
    # request, it has processed the whole queue before. A server with a full queue refuses this
    # request at once, so try again.
    end_s = time.monotonic() + idle_s
    while (left_s := end_s - time.monotonic()) > 0:
        try:
            transport.infer(0, left_s)
        except RequestFailedError:
            time.sleep(PROBE_S)
        else:
            return True
    return False
