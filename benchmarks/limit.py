"""Compare the certified throughput through Triton with the throughput of the runtime alone.

Requests arrive at constant intervals, and the SLA is loose. Therefore the CPU limits the
throughput, not the queue. Server and client use different cores. The runtime alone runs before and
after the server, so that the comparison does not depend on host drift.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from benchmarks.results import Goal, Row
from benchmarks.serving import Place, Say, loading, serving
from perseus.host.files import write_json
from perseus.measurement.live_system import LiveSystem
from perseus.models.onnx_export import export_model
from perseus.models.repository import write_tenant
from perseus.models.tensors import ModelTensors
from perseus.peak.durations import grace_s
from perseus.peak.system import System
from perseus.peak.verdict import Verdict, judge
from perseus.serving.triton_command import BACKENDS
from perseus.study.sla import Sla
from perseus.study.tasks.export import ExportTask
from perseus.study.tasks.repository import ServedTenant
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.client import Client
from perseus.traffic.route import Route, shared

BENCHMARK = "limit"
LADDER = (0.99, 0.98, 0.96, 0.94, 0.92, 0.89, 0.86, 0.83, 0.8, 0.75, 0.7, 0.6)
"""Shares of the closed-loop rate, tested in this order until a window passes."""
IN_FLIGHT = 4
CLOSED_SERVICES, CLOSED_S = 20.0, 4.0
SLA_SERVICES = 20.0
SETTLE_SERVICES, COUNTED_SERVICES = 10.0, 160.0
SETTLE_S, COUNTED_S = 1.0, 4.0
"""The settling time of a window takes SETTLE_SERVICES service times, but at least SETTLE_S seconds.
The counted part takes COUNTED_SERVICES service times, but at least COUNTED_S seconds. A window
needs at least 130 requests to pass an SLA on the p95."""
BARE_S = 4.0
Runtime = Literal["onnxruntime", "openvino"]


@dataclass(frozen=True)
class Cell:
    """A network, its runtime, and the batch size."""

    architecture: str
    runtime: Runtime
    batch: int

    @property
    def case(self) -> str:
        return f"{self.architecture}, {self.runtime}, batch {self.batch}"

    @property
    def goal(self) -> Goal | None:
        if self.architecture == "resnet50":
            return Goal(">=", 0.95)
        return Goal(">=", 0.75) if self.batch == 1 else None


CELLS = tuple(
    Cell(architecture, runtime, batch)
    for architecture in ("resnet50", "mobilenet_v3_small")
    for runtime in ("onnxruntime", "openvino")
    for batch in (1, 8)
)


def run(at: Place, say: Say) -> Iterator[Row]:
    for cell in CELLS:
        onnx = exported(at.folder / "models", cell.architecture, say)
        before = _bare(at, cell, onnx)
        say(f"{cell.case}: {before:.1f} images/s alone")
        service_s = cell.batch / before
        with served(at, cell, onnx, service_s) as (client, system):
            closed_rps = _closed_rps(client, service_s)
            say(f"{cell.case}: {closed_rps * cell.batch:.1f} images/s in closed loop")
            passing_rps = certified_rps(system, closed_rps, service_s, say)
        bare = (before + _bare(at, cell, onnx)) / 2
        name = f"{cell.runtime} in-process"
        for metric, rate_rps, goal in (
            ("certified images/s (higher is better)", passing_rps, cell.goal),
            ("images/s in closed loop (higher is better)", closed_rps, None),
        ):
            yield Row(BENCHMARK, cell.case, metric, rate_rps * cell.batch, bare, name, goal)


def _closed_rps(client: Client, service_s: float) -> float:
    """Return the throughput in requests/s with IN_FLIGHT requests in flight; the first fifth of the
    time is ignored."""
    seconds = max(CLOSED_S, CLOSED_SERVICES * service_s)
    start_ns = time.monotonic_ns()
    client.start_closed(start_ns, seconds, IN_FLIGHT)
    time.sleep(seconds)
    client.stop(patience_s=IN_FLIGHT * service_s + 1)
    requests = client.result().requests
    done_ns = np.sort(requests.done_ns[requests.answered])
    counted_ns = done_ns[
        (done_ns > start_ns + seconds * 0.2e9) & (done_ns <= start_ns + seconds * 1e9)
    ]
    return (len(counted_ns) - 1) / float(counted_ns[-1] - counted_ns[0]) * 1e9


def certified_rps(system: System, closed_rps: float, service_s: float, say: Say) -> float:
    """Return the highest rate of LADDER at which a window passes, or 0."""
    for share in LADDER:
        verdict, reason = _verdict(system, share * closed_rps, service_s)
        say(f"{share:.0%} of the closed-loop rate: {verdict} ({reason})")
        if verdict is Verdict.PASS:
            return share * closed_rps
    return 0.0


def _verdict(system: System, rate_rps: float, service_s: float) -> tuple[Verdict, str]:
    """Return the verdict of a new window and its reason. The function repeats an invalid window
    once."""
    sla = Sla(latency_ms=SLA_SERVICES * service_s * 1000)
    settle_s = max(SETTLE_S, SETTLE_SERVICES * service_s)
    seconds = settle_s + grace_s((sla,)) + max(COUNTED_S, COUNTED_SERVICES * service_s)
    for _ in range(2):
        with system.offer([rate_rps], seconds) as load:
            seen = judge(
                load.until(seconds),
                0,
                sla,
                rate_rps=rate_rps,
                settle_s=settle_s,
                grace_s=grace_s((sla,)),
                confidence=0.95,
            )
        if seen.verdict is not Verdict.INVALID:
            break
    return seen.verdict, seen.reason


@contextmanager
def served(
    at: Place, cell: Cell, onnx: Path, service_s: float
) -> Iterator[tuple[Client, LiveSystem]]:
    repository = at.folder / "limit"
    tenant = ServedTenant(
        name="model", model=cell.architecture, runtime=cell.runtime, max_batch_size=cell.batch
    )
    check = ModelTensors.of_classifier((3, 224, 224), 1000).plain()
    write_tenant(repository, tenant, onnx, check)
    images = np.random.default_rng(0).standard_normal((cell.batch, 3, 224, 224))
    with (
        serving(at, repository, BACKENDS) as server,
        shared([images.astype(np.float32)], server.grpc_address) as inputs,
    ):
        timeout_s = max(5.0, 2 * SLA_SERVICES * service_s)
        route = Route("grpc", server.grpc_address, "model", inputs, timeout_s)
        client = Client("model", route, [at.client_core])
        longest_sla_s, arrivals = SLA_SERVICES * service_s, Arrivals("constant")
        with (
            client,
            loading(at, server, client, longest_sla_s=longest_sla_s, arrivals=arrivals) as live,
        ):
            yield client, live


def exported(folder: Path, architecture: str, say: Say) -> Path:
    """Return the ONNX file of a network, and export the network if the file does not exist."""
    onnx = folder / architecture / "model.onnx"
    if not onnx.exists():
        say(f"exporting {architecture}")
        task = ExportTask(architecture=architecture)
        record = export_model(task, onnx, onnx.with_name("reference.npz"))
        write_json(onnx.with_name("record.json"), record)
    return onnx


def _bare(at: Place, cell: Cell, onnx: Path) -> float:
    """Return the images/s of the runtime alone, on the core of the server."""
    program = f"import os; os.sched_setaffinity(0, [{at.server_core}]); import runpy, sys;"
    program += "runpy.run_module('benchmarks.bare', run_name='__main__', alter_sys=True)"
    command = [sys.executable, "-c", program, cell.runtime, str(onnx), str(cell.batch)]
    done = subprocess.run(
        [*command, str(BARE_S)], capture_output=True, text=True, check=True, env=os.environ
    )
    return float(done.stdout)
