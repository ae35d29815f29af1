"""Measure one cell: run its experiment on cores of its own, and write its raw results."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from perseus.host import gpu, machine
from perseus.host.cores import TooFewCoresError
from perseus.host.exclusive import LockError
from perseus.host.files import write_json
from perseus.host.gpu import GpuError
from perseus.host.signals import terminate_as_exit
from perseus.measurement.cell import CellUnderTest, Inputs, Outputs, RawResults
from perseus.measurement.energy import window_watts
from perseus.measurement.experiments import procedure
from perseus.measurement.monitor import MonitorFile
from perseus.measurement.raw_results import RequestsWriter, write_windows
from perseus.measurement.verify import VerificationError
from perseus.serving.failures import ServerError
from perseus.serving.launch import cores_of
from perseus.study.tasks.measure import MeasureTask
from perseus.study.traces import TraceError
from perseus.traffic.client import ClientError
from perseus.traffic.route import RouteError

FAILURES: Final = (
    ServerError,
    VerificationError,
    TooFewCoresError,
    LockError,
    GpuError,
    ClientError,
    RouteError,
    TraceError,
)
"""What `measure` raises where nothing could be measured; each says why in a sentence."""


def measure(
    task: MeasureTask, inputs: Inputs, outputs: Outputs, say: Callable[[str], None]
) -> None:
    """Measure a cell and write its raw results; `say` hears the progress.

    An infeasible SLA, a client at its limit, or a server that dies under load is a record with that
    verdict. Raises one of FAILURES: ServerError when the server does not start, VerificationError
    when it serves wrong answers, GpuError for a GPU that this machine has not.
    """
    of_gpus = gpu.describe(task.server.gpus)
    with ExitStack() as stack:
        stack.enter_context(terminate_as_exit())
        server_cores, client_cores = stack.enter_context(
            cores_of(task.server, f"{task.study}/{task.cell}", say)
        )
        os.sched_setaffinity(0, client_cores)
        started = {"unix_ns": time.time_ns(), "monotonic_ns": time.monotonic_ns()}
        raw = RawResults(
            stack.enter_context(RequestsWriter(outputs.requests)),
            stack.enter_context(MonitorFile(outputs.monitor)),
            errors={name: {} for name in task.tenant_names},
        )
        cell = CellUnderTest(task, inputs, outputs.server_log, server_cores, client_cores, raw, say)
        found = procedure(task.run.kind).measure(cell)
    write_windows(outputs.windows, raw.windows)
    write_json(
        outputs.record,
        {
            "cell": task.plain(),
            "host": machine.describe(server_cores, client_cores)
            | {"client_realtime": raw.client_realtime, "gpu": of_gpus},
            "started": started,
            "finished_monotonic_ns": time.monotonic_ns(),
            "requests": sum(row["requests"] for row in raw.windows),
            "measured_s": sum(row["elapsed_s"] for row in raw.windows) / len(task.tenants),
            "errors": raw.errors,
            "gpu_watts": window_watts(outputs.monitor, raw.windows, found.watched_window),
            **found.record,
        },
    )
