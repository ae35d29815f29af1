"""Measure the ceiling of the client: the highest rate that the client sends on schedule to a null
model (docs/explanation/load.md).

The null model does no work, so only the client and the network limit the throughput. First, closed
loops measure the largest throughput. Then Perseus searches below this throughput for the ceiling:
the highest rate at which an open-loop window is valid. The arrivals, the protocol and the latency
limits come from the configuration of the study.
"""

from __future__ import annotations

import json
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2 as pb

from perseus.host import machine
from perseus.host.cores import core_locks, split_client_cores, split_cores
from perseus.host.exclusive import exclusive
from perseus.host.files import write_json
from perseus.host.orphans import temporary_folder
from perseus.host.procfs import other_cpu_share, read_cpu
from perseus.host.signals import terminate_as_exit
from perseus.measurement.clients import arrivals
from perseus.measurement.idle_host import IdleHostWaiter
from perseus.measurement.live_system import LiveSystem
from perseus.measurement.raw_results import RequestsWriter
from perseus.models.examples import examples
from perseus.models.tensors import ModelTensors, Tensor, TensorSpec
from perseus.peak.verdict import ON_BUSY_HOST, ON_IDLE_HOST, TenantWindow, Tolerance, Verdict, judge
from perseus.serving.launchers.embedded import embedded_triton
from perseus.serving.running_server import RunningServer
from perseus.study.sla import Sla
from perseus.study.tasks.ceiling import CeilingTask
from perseus.traffic.arrivals import Arrivals, stream
from perseus.traffic.client import Client, processes_each
from perseus.traffic.route import route_to

MODEL, CLASSES = "null", 1000
CONCURRENCIES = (1, 4, 16)
CLOSED_S, SETTLE_S, OPEN_S = 1.5, 0.5, 2.0
SHARES = 0.9 * 0.85 ** np.arange(18)
"""Open-loop rates to try, as shares of the largest closed-loop throughput: 90 % to 5.7 %."""
ATTEMPTS = 2
MAX_OTHER_CPU_SHARE = 2 * ON_IDLE_HOST.other_load
"""Largest share of the cores of server and client that other processes may use in a valid closed
loop. The network code of the kernel counts as another process, and can use a tenth of the cores."""
PATIENCE_S = 2.0  # time to wait for responses after a window; the null model has no SLA
GRACE_S = 0.1  # time to wait for the last counted responses; the null model responds at once


@dataclass(frozen=True)
class Shape:
    """The shapes of the inputs of a request, and the number of examples in a request."""

    inputs: tuple[TensorSpec, ...]
    request_batch_size: int
    has_batches: bool = True

    @property
    def sizes(self) -> str:
        """Return the sizes of the inputs of one example as text, for example "3x224x224"."""
        return " + ".join("x".join(map(str, each.dims)) for each in self.inputs)

    @property
    def batch(self) -> dict[str, Tensor]:
        """Return the inputs of a request."""
        given = examples(self.inputs, self.request_batch_size, seed=0)
        return {name: of if self.has_batches else of[0] for name, of in given.items()}


def shapes_of(task: CeilingTask, checks: Sequence[Path]) -> dict[Shape, list[str]]:
    """Group the models by the shape of their requests, and return their names by shape.

    `checks` contains the paths of the models' export records (check.json). The folder of each
    export record has the name of the model. Triton needs a dimension in addition to the batch
    dimension, so a scalar gets a dimension of size 1.
    """
    records = {path.parent.name: json.loads(path.read_text()) for path in checks}
    shapes: dict[Shape, list[str]] = {}
    for request in task.requests:
        tensors = ModelTensors.of(records[request.model])
        inputs = tuple(
            replace(each, name=f"input{i}", dims=each.dims or (1,))
            for i, each in enumerate(tensors.inputs)
        )
        shape = Shape(inputs, request.images, tensors.has_batches)
        shapes.setdefault(shape, []).append(request.model)
    return shapes


def strictest(task: CeilingTask, models: Sequence[str]) -> Sla:
    """Return an SLA with the smallest latency limit of the models `models`.

    A smaller latency limit allows less send lag. Therefore a ceiling measured with this SLA is
    valid for all these models.
    """
    return Sla(latency_ms=min(each.sla_ms for each in task.requests if each.model in models))


@dataclass(frozen=True)
class Closed:
    """The result of a closed loop with a fixed number of requests in flight.

    Other processes used the share `other_cpu_share` (0..1) of the CPU time of all server and client
    cores.
    """

    concurrency: int
    rate_rps: float
    cpu_us_per_request: float
    other_cpu_share: float = 0.0


@dataclass(frozen=True)
class Open:
    """The result of an open-loop window.

    `valid` is true if three conditions are met: the verdict of the window is not `invalid`, the
    client sent on schedule, and the server answered at least 99 % of the requests.
    """

    rate_rps: float
    send_lag_p99_ms: float
    client_cpu: float
    valid: bool
    reason: str


def measure(
    task: CeilingTask,
    shapes: Mapping[Shape, Sequence[str]],
    trace: Path | None,
    path: Path,
    log_path: Path,
    say: Callable[[str], None],
) -> None:
    """Measure the ceiling of the client for each request shape, and write the ceilings to a file.

    `shapes` contains, for each shape of requests, the names of the models whose requests have this
    shape. If the study replays a trace, `trace` is the file with the trace.

    Raises ServerError or ClientError if a measurement fails. Raises TraceError if the trace is
    invalid, TooFewCoresError if the host has too few cores, and LockError if a lock file is
    unusable.
    """
    process = arrivals(task.arrivals, task.trace, trace)
    server_cores, client_cores = _cores(task)
    processes = processes_each(task.client.processes, client_cores, tenants=1)
    with ExitStack() as stack:
        stack.enter_context(terminate_as_exit())
        locks = core_locks([*server_cores, *client_cores])
        stack.enter_context(exclusive(locks, f"the client's ceiling beside {task.server}", say))
        os.sched_setaffinity(0, client_cores)
        started_unix_ns, measured = time.time_ns(), []
        waiter = IdleHostWaiter([*server_cores, *client_cores], os.getpid(), say)
        for i, (shape, models) in enumerate(shapes.items()):
            with temporary_folder() as folder:
                write_null_model(folder, shape)
                with embedded_triton(folder, log_path, server_cores) as server:
                    sla = strictest(task, models)
                    cores = (server_cores, client_cores)
                    bench = _Bench(server, shape, sla, task, cores, processes, i)
                    tolerance = ON_IDLE_HOST
                    closed, tried, disturbed = bench.run(process, tolerance, say)
                    if disturbed:
                        waiter.wait_until_idle(MAX_OTHER_CPU_SHARE)
                        say("measuring again; this time, other processes may use more of the cores")
                        tolerance = ON_BUSY_HOST
                        closed, tried, disturbed = bench.run(process, tolerance, say)
            measured.append(
                {"inputs": shape.sizes, "request_batch_size": shape.request_batch_size}
                | {"models": sorted(models), "request_bytes": _request_bytes(shape)}
                | {"closed": [asdict(each) for each in closed]}
                | {"open": [asdict(each) for each in tried]}
                | {"longest_lag_ms": tolerance.lag_ms(sla.latency_ms)}
                | {"disturbed": disturbed}
            )
    write_json(
        path,
        {
            "server": task.server,
            "client": task.client.plain(),
            "arrivals": task.arrivals.plain(),
            "processes": processes,
            "started_unix_ns": started_unix_ns,
            "host": machine.describe(server_cores, client_cores),
            "shapes": measured,
        },
    )


def _cores(task: CeilingTask) -> tuple[list[int], list[int]]:
    if task.client_cores is not None:
        return split_client_cores(task.client_cores)
    assert task.cores is not None
    return split_cores(task.cores)


def write_null_model(repository: Path, shape: Shape) -> None:
    """Write a Triton model that responds with zeros to requests of the shape `shape`."""
    config = pb.ModelConfig(
        name=MODEL,
        backend="null",
        max_batch_size=shape.request_batch_size if shape.has_batches else 0,
        input=[
            pb.ModelInput(
                name=each.name,
                data_type=pb.DataType.Value(f"TYPE_{each.datatype}"),
                dims=each.dims,
            )
            for each in shape.inputs
        ],
        output=[pb.ModelOutput(name="output", data_type=pb.TYPE_FP32, dims=[CLASSES])],
    )
    config.instance_group.add(count=1, kind=pb.ModelInstanceGroup.Kind.KIND_CPU)
    (repository / MODEL / "1").mkdir(parents=True)
    (repository / MODEL / "config.pbtxt").write_text(text_format.MessageToString(config))


def _request_bytes(shape: Shape) -> int:
    return sum(tensor.nbytes for tensor in shape.batch.values())


class _Bench:
    """Measures the ceiling of the client for requests of one shape, on a running null model."""

    def __init__(
        self,
        server: RunningServer,
        shape: Shape,
        sla: Sla,
        task: CeilingTask,
        cores: tuple[Sequence[int], Sequence[int]],
        processes: int,
        number: int,
    ) -> None:
        self._server, self._shape, self._sla, self._task = server, shape, sla, task
        self._server_cores, self._client_cores = cores
        self._processes = processes
        self._streams = [stream(task.seed, number, 1)]

    def run(
        self, process: Arrivals, tolerance: Tolerance, say: Callable[[str], None]
    ) -> tuple[list[Closed], list[Open], str]:
        """Return the results of the closed loops, the results of the open-loop windows, and the
        text that `disturbed_loads` returns."""
        name = f"inputs {self._shape.sizes}, {self._shape.request_batch_size} per request"
        with ExitStack() as stack:
            batch = self._shape.batch
            way = route_to(self._server, self._task.client, MODEL, [batch], timeout_s=10.0)
            route = stack.enter_context(way)
            client = stack.enter_context(
                Client("the null model", route, self._client_cores, self._processes)
            )
            folder = stack.enter_context(temporary_folder())
            writer = stack.enter_context(RequestsWriter(folder / "requests.parquet"))
            system = LiveSystem(
                self._server,
                [client],
                process,
                self._streams,
                writer,
                server_cores=self._server_cores,
                client_cores=self._client_cores,
                longest_sla_s=PATIENCE_S,
            )
            closed = [self._closed_loop(client, count) for count in CONCURRENCIES]
            fastest_rps = max(each.rate_rps for each in closed)
            say(f"{name}: {fastest_rps:.0f} requests/s in a closed loop")
            seen: list[TenantWindow] = []

            def offer(rate_rps: float) -> Open:
                seen.append(open_loop(system, rate_rps, self._sla, tolerance))
                return judged(seen[-1], self._sla, tolerance)

            tried = highest_valid(fastest_rps, offer)
            disturbed = disturbed_loads(closed, seen)
            say("; ".join(filter(None, (f"{name}: {describe(tried)}", disturbed))))
        return closed, tried, disturbed

    def _closed_loop(self, client: Client, concurrency: int) -> Closed:
        """Run a closed loop. If other processes disturb the closed loop, run it once more."""
        cores = [*self._server_cores, *self._client_cores]
        for _ in range(ATTEMPTS):
            before = read_cpu(cores, os.getpid())
            closed = closed_loop(client, concurrency)
            other_load = other_cpu_share(before, read_cpu(cores, os.getpid()))
            if other_load <= MAX_OTHER_CPU_SHARE:
                break
        return replace(closed, other_cpu_share=other_load)


def closed_loop(client: Client, concurrency: int) -> Closed:
    """Run a closed loop. Return the throughput after the settling time, and the CPU time of the
    client per response."""
    start_ns = time.monotonic_ns()
    client.start_closed(start_ns, CLOSED_S, concurrency)
    time.sleep(SETTLE_S)
    before = client.look(time.monotonic_ns())
    time.sleep(CLOSED_S - SETTLE_S)
    after_ns = time.monotonic_ns()
    after = client.look(after_ns)
    client.stop(PATIENCE_S)
    requests = client.result().requests
    done_ns = requests.done_ns[requests.answered]
    from_ns = start_ns + round(SETTLE_S * 1e9)
    count = int(np.sum((done_ns >= from_ns) & (done_ns < after_ns)))
    cpu_s = sum(after.cpu_s) - sum(before.cpu_s)
    seconds = (after_ns - from_ns) / 1e9
    return Closed(concurrency, count / seconds, 1e6 * cpu_s / max(count, 1))


def open_loop(system: LiveSystem, rate_rps: float, sla: Sla, tolerance: Tolerance) -> TenantWindow:
    """Run an open-loop window with the arrival process of the study, and return its verdict.

    If the client sends too late, the window is invalid, even if its latencies keep the SLA.
    """
    with system.offer((rate_rps,), OPEN_S) as load:
        seen = load.until(OPEN_S)
    return judge(
        seen,
        0,
        sla,
        rate_rps=rate_rps,
        settle_s=SETTLE_S,
        grace_s=GRACE_S,
        confidence=0.9,
        tolerance=replace(tolerance, late_within=False),
    )


def highest_valid(fastest_rps: float, offer: Callable[[float], Open]) -> list[Open]:
    """Search for the ceiling by bisection. Return the results of all windows, highest rate first.

    The ceiling is the highest rate at which a window is valid. Each tried rate is `fastest_rps`
    times one of SHARES. The function `offer` runs a window at a given rate.
    """
    tried: list[Open] = []

    def valid(share: float) -> bool:
        for _ in range(ATTEMPTS):
            tried.append(offer(float(share * fastest_rps)))
            if tried[-1].valid:
                return True
        return False

    bisect_left(SHARES, True, key=valid)
    return sorted(tried, key=lambda each: -each.rate_rps)


def judged(seen: TenantWindow, sla: Sla, tolerance: Tolerance) -> Open:
    """Decide whether an open-loop window is valid, and return the result of the window."""
    punctual = seen.send_lag_p99_ms <= tolerance.lag_ms(sla.latency_ms)
    valid = seen.verdict is not Verdict.INVALID and punctual and seen.completed_ratio >= 0.99
    return Open(
        rate_rps=seen.offered_rps,
        send_lag_p99_ms=seen.send_lag_p99_ms,
        client_cpu=seen.client_cpu,
        valid=valid,
        reason="" if valid else seen.reason,
    )


def disturbed_loads(closed: Sequence[Closed], windows: Sequence[TenantWindow]) -> str:
    """Return a text with a load at which other processes disturbed every attempt.

    The load is a closed loop or an open-loop rate. With such a load, the measured ceiling may be
    too low. The text is empty if each load had an undisturbed attempt.
    """
    share = max((each.other_cpu_share for each in closed), default=0.0)
    if share > MAX_OTHER_CPU_SHARE:
        return f"other processes used {share:.0%} of the cores in a closed loop"
    of_rates: dict[float, list[TenantWindow]] = {}
    for window in windows:
        of_rates.setdefault(window.offered_rps, []).append(window)
    lost = (seen for seen in of_rates.values() if all(window.disturbed for window in seen))
    return next((f"{seen[-1].offered_rps:.0f} requests/s: {seen[-1].reason}" for seen in lost), "")


def describe(tried: Sequence[Open]) -> str:
    ceiling = next((each for each in tried if each.valid), None)
    if ceiling is None:
        last = tried[-1]
        return f"no window is valid, even at {last.rate_rps:.0f} requests/s: {last.reason}"
    lag_ms = ceiling.send_lag_p99_ms
    return f"ceiling {ceiling.rate_rps:.0f} requests/s, send lag p99 {lag_ms:.2f} ms"
