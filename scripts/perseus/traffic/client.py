"""Control the client processes, which send the requests of a tenant.

Each client process runs `sender` on cores that the server does not use. For each window, a client
process records the intended send times, the actual send times, the times at which the requests end,
and the outcomes. `Client` can get these data at any time, even during the window.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Pipe
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perseus.traffic.connect import connect
from perseus.traffic.requests import Requests
from perseus.traffic.route import Route
from perseus.traffic.sender import Result, Setup, Snapshot
from perseus.traffic.transport import RequestFailedError

# The spawn method of multiprocessing would run the caller's main script again.
SENDER = "import sys; from multiprocessing.connection import Connection;"
SENDER += " from perseus.traffic import sender;"
SENDER += "sender.main(Connection(int(sys.argv[1])))"
ANSWER_S = 30.0  # time within which a client process must respond to a command


class ClientError(RuntimeError):
    """A client process ended, does not respond or cannot connect, or a single request failed."""


def sequential_ms(route: Route, count: int, limit_s: float) -> NDArray[np.float64]:
    """Send up to `count` requests one after another from this process, and return their latencies
    in ms.

    After `limit_s` seconds, the function sends no more requests. Raises ClientError if a request
    fails.
    """
    latencies: list[float] = []
    end_s = time.monotonic() + limit_s
    try:
        with connect(route) as transport:
            while len(latencies) < count and (not latencies or time.monotonic() < end_s):
                start_ns = time.monotonic_ns()
                transport.infer(len(latencies), timeout_s=max(60, route.timeout_s))
                latencies.append((time.monotonic_ns() - start_ns) / 1e6)
    except RequestFailedError as error:
        raise ClientError(f"a single request failed before the load began: {error}") from error
    return np.array(latencies)


def processes_each(chosen: int | None, cores: Sequence[int], tenants: int) -> int:
    """Return the number of client processes of each tenant: `chosen`, or a default if `chosen` is
    None.

    By default, the tenants divide the cores of the client equally, and each tenant has one process
    per core. A tenant with less than one core also has one process.
    """
    return chosen or max(1, len(cores) // tenants)


class Client:
    """The client processes of a tenant; a context manager.

    The client assigns the requests to the processes in turn. For an ensemble, `steps` contains the
    names of the Triton models that process each request, or is None if these names are unknown. For
    a single model, `steps` is empty. Raises ClientError if a process cannot connect, ends, or does
    not respond within 30 s. After a ClientError, all later calls also raise ClientError.
    """

    def __init__(
        self,
        name: str,
        route: Route,
        cores: Sequence[int],
        processes: int = 1,
        steps: Sequence[str] | None = (),
    ) -> None:
        self.name, self.model, self.steps = name, route.model, steps
        setup = Setup(route, tuple(cores))
        self._processes = [_Process(name, setup) for _ in range(processes)]
        self.prompt = False
        """Whether the system runs the processes at a higher priority than ordinary processes
        (SCHED_RR)."""

    def __enter__(self) -> Client:
        with ExitStack() as stack:
            for process in self._processes:
                stack.enter_context(process)
            # Each process responds after it has connected to the server.
            granted = [process.receive() for process in self._processes]
            self.prompt = all(granted)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def start(self, start_ns: int, offsets_s: NDArray[np.float64]) -> None:
        """Start an open-loop window. The client sends the requests at `offsets_s` seconds after the
        time `start_ns` of the monotonic clock."""
        intended_ns = start_ns + np.round(offsets_s * 1e9).astype(np.int64)
        for i, process in enumerate(self._processes):
            process.send("open", intended_ns[i :: len(self._processes)])

    def start_closed(self, start_ns: int, seconds: float, concurrency: int) -> None:
        """Start a closed-loop window of `seconds` seconds with `concurrency` requests in flight.
        The window starts at the time `start_ns` of the monotonic clock."""
        end_ns, count = start_ns + round(seconds * 1e9), len(self._processes)
        for i, process in enumerate(self._processes):
            process.send("closed", start_ns, end_ns, len(range(i, concurrency, count)))

    def look(self, until_ns: int) -> Snapshot:
        """Return the present state of all requests with an intended send time before `until_ns`.
        The window goes on."""
        for process in self._processes:
            process.send("look", until_ns)
        seen: list[Snapshot] = [process.receive() for process in self._processes]
        return Snapshot(
            _merged([each.requests for each in seen]),
            tuple(cpu_s for each in seen for cpu_s in each.cpu_s),
        )

    def silent_s(self) -> float:
        """Return the largest result of `loops.silent_s` over the client processes."""
        for process in self._processes:
            process.send("silence")
        return max(process.receive() for process in self._processes)

    def stop(self, patience_s: float, idle_s: float = 20.0) -> None:
        """End the window: stop sending, and let the client processes wait for responses. The method
        returns at once. The caller gets the requests from `result`.

        Each client process waits up to `patience_s` seconds for responses, and then cancels the
        requests without a response. If a request of the process timed out or was cancelled, the
        process also waits up to `idle_s` seconds until the server's queue is empty.
        """
        for process in self._processes:
            process.send("stop", patience_s, idle_s)
        self._stop_s = patience_s + idle_s

    def result(self) -> Result:
        results: list[Result] = [process.receive(self._stop_s) for process in self._processes]
        errors: dict[str, str] = {}
        for each in reversed(results):
            errors |= each.errors
        return Result(
            _merged([each.requests for each in results]),
            errors,
            all(each.idle for each in results),
            sum(each.cpu_s for each in results),
        )


def _module_folders() -> list[str]:
    """Return the folders in which a client process searches for modules: the folder of Perseus,
    then the entries of PYTHONPATH of this process."""
    theirs = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [str(Path(__file__).parents[2]), *filter(None, theirs)]


class _Process:
    """One client process, and the pipe to it; a context manager."""

    def __init__(self, name: str, setup: Setup) -> None:
        self._name, self._setup = name, setup
        self._fate = "died"  # the message after a broken pipe

    def __enter__(self) -> _Process:
        self._pipe, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", SENDER, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(_module_folders())},
            stdin=subprocess.DEVNULL,
            # A closing terminal sends a signal to the whole process group of the parent. A sender
            # in this group would end before the parent, and the parent would report a dead client.
            # A new session for the sender would change its share of CPU time, because the
            # kernel divides CPU time between sessions.
            process_group=0,
        )
        theirs.close()
        try:
            self._pipe.send(self._setup)
        except BaseException as error:
            self.__exit__()
            if isinstance(error, OSError):
                raise self._lost() from error
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self._pipe.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def send(self, command: str, *values: object) -> None:
        try:
            self._pipe.send((command, *values))
        except OSError as error:
            raise self._lost() from error

    def receive(self, more_s: float = 0.0) -> Any:
        try:
            if not self._pipe.poll(ANSWER_S + more_s):
                # Close the pipe, since a late response would count as the response to the next
                # command.
                self._pipe.close()
                self._fate = "does not answer"
                raise self._lost()
            answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise self._lost() from error
        if isinstance(answer, RequestFailedError):
            raise ClientError(f"the client of {self._name}: {answer}")
        return answer

    def _lost(self) -> ClientError:
        return ClientError(f"the client of {self._name} {self._fate}")


def _merged(parts: Sequence[Requests]) -> Requests:
    columns = [
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("intended_ns", "sent_ns", "done_ns", "status")
    ]
    order = np.argsort(columns[0], kind="stable")
    return Requests(*(column[order] for column in columns))
