"""Tests of the load of other processes on a server's GPUs, from a fake NVML to windows.parquet."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import fake_nvml
import numpy as np
import pyarrow.parquet as pq
import pytest
from fake_nvml import FakeNvml, process_sample
from measure_tasks import measure_task, server, tenant

from perseus.measurement import clients, live_load, live_system
from perseus.measurement.cell import RawResults
from perseus.measurement.clients import under_load
from perseus.measurement.open_loop import open_loop
from perseus.measurement.raw_results import RequestsWriter, write_windows
from perseus.measurement.windows import as_rows
from perseus.peak.verdict import ON_BUSY_HOST, ON_IDLE_HOST, Tolerance
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import ServerTimes
from perseus.traffic.requests import Requests, Status
from perseus.traffic.sender import Result

QUESTION = "nvmlDeviceGetProcessUtilization"
NOBODY = 2**22 + 1  # no Linux process has this id


class PunctualClient:
    """A client that receives each response 5 ms after the intended send time."""

    prompt, silent_s = True, staticmethod(lambda: 0.0)

    def __init__(self, name, route, cores, processes, steps) -> None:
        self.name = self.model = name
        self.steps = steps

    def __enter__(self) -> PunctualClient:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def start(self, start_ns, offsets_s) -> None:
        due_ns = start_ns + np.round(np.asarray(offsets_s) * 1e9).astype(np.int64)
        status = np.full(len(due_ns), Status.OK, np.uint8)
        self.requests = Requests(due_ns, due_ns, due_ns + 5_000_000, status)

    def look(self, now_ns) -> SimpleNamespace:
        return SimpleNamespace(requests=self.requests, cpu_s=(0.0, 0.0))

    def stop(self, *patience_s) -> None:
        pass

    def result(self) -> Result:
        return Result(self.requests, {}, True, 0.0)


@pytest.fixture
def nvml(monkeypatch) -> FakeNvml:
    monkeypatch.setattr(clients, "Client", PunctualClient)
    for module in (live_load, live_system):
        monkeypatch.setattr(module, "tenant_times", lambda *a, **k: ServerTimes(0, 0, 0, 0, 0))
    return fake_nvml.install(monkeypatch, FakeNvml())


def row(tmp_path, tolerance: Tolerance = ON_IDLE_HOST, **of_server: Any) -> dict[str, Any]:
    """Return the row of windows.parquet for a window on a server that is this process."""
    task = measure_task(tenant("a"), server=server(**of_server))
    with RequestsWriter(tmp_path / "requests.parquet") as writer:
        cell: Any = SimpleNamespace(
            task=task,
            inputs=SimpleNamespace(trace=None),
            server_cores=[],  # this test does not measure the load on cores
            client_cores=[0],
            raw=RawResults(writer, None, {"a": {}}),
            stream=np.random.default_rng,
            say=print,
        )
        this_process = RunningServer("", "", "", os.getpid())
        with under_load(cell, this_process, task.tenants, {"a": None}) as system:
            window = open_loop(task, system, "soak", (200.0,), 1.5, tolerance)
            rows = as_rows(window, system.ended[-1], ["a"], 1)
    write_windows(tmp_path / "windows.parquet", rows)
    (only,) = pq.read_table(tmp_path / "windows.parquet").to_pylist()
    return only


def test_other_work_on_a_gpu_of_the_server_makes_its_windows_invalid(nvml, tmp_path):
    nvml.values[QUESTION] = [process_sample(os.getpid(), 55), process_sample(NOBODY, 40)]
    invalid = row(tmp_path, device="gpu", gpus=(0,))
    assert (invalid["verdict"], invalid["other_gpu_share"]) == ("invalid", 0.4)
    assert invalid["reason"] == "other processes used 40% of the server's GPU"
    assert row(tmp_path, ON_BUSY_HOST, device="gpu", gpus=(0,))["verdict"] != "invalid"
    assert nvml.opened == 0


def test_the_servers_own_work_does_not(nvml, tmp_path):
    nvml.values[QUESTION] = [process_sample(os.getpid(), 90)]
    busy = row(tmp_path, device="gpu", gpus=(0,))
    assert busy["verdict"] != "invalid" and busy["other_gpu_share"] == 0


@pytest.mark.parametrize("gpus", [(), (0,)])
def test_where_no_gpu_tells_of_it_nothing_is_known_and_nobody_blamed(nvml, tmp_path, gpus):
    seen = row(tmp_path, gpus=gpus)
    assert seen["verdict"] != "invalid" and seen["other_gpu_share"] is None
