"""Tests of a cell: its settings, its results, and the counters of its windows."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pyarrow.parquet as pq
import pytest
from measure_tasks import measure_task, tenant

from perseus.host.procfs import CpuReading, other_cpu_share
from perseus.measurement import clients
from perseus.measurement.cell import RawResults
from perseus.measurement.clients import arrivals, under_load
from perseus.measurement.decomposition import decompose
from perseus.measurement.monitor import MonitorFile
from perseus.measurement.raw_results import RequestsWriter
from perseus.peak.durations import loop_s
from perseus.serving.running_server import RunningServer
from perseus.serving.statistics import ServerTimes
from perseus.study.experiments.aa import Run as Restarts
from perseus.study.experiments.concurrency import Run as Sweep
from perseus.study.experiments.peak import DEDICATED, Run
from perseus.study.presets import PRESETS
from perseus.study.tasks.measure import MeasuredArrivals, MeasureTask
from perseus.study.traces import TraceSource
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.requests import Requests, Status
from perseus.traffic.route import Route


def test_a_task_survives_the_way_through_the_workflow():
    for name, preset in PRESETS.items():
        for run in (DEDICATED, Run.mix([3, 1]), Run.hold("b", 50), Sweep(concurrencies=(1, 4))):
            task = measure_task(
                tenant("a"), tenant("b"), run=run, preset=name, search=preset.settings
            )
            assert MeasureTask.model_validate(json.loads(json.dumps(task.plain()))) == task


def test_a_cell_has_the_arrivals_of_its_task(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("time_s\n0\n1\n3\n")
    gamma, replayed = (
        measure_task(tenant("a"), arrivals=MeasuredArrivals(process=process, cv=2.0))
        for process in ("gamma", "trace")
    )
    assert arrivals(gamma.arrivals, None, None) == Arrivals("gamma", 2.0)
    source = TraceSource(file="trace.csv")
    assert arrivals(replayed.arrivals, source, trace) == Arrivals("trace", 2.0, (1.0, 2.0))


@pytest.mark.parametrize("timeout_s", [5.0, 60.0])
@pytest.mark.parametrize(
    ("run", "is_longer"),
    [
        (DEDICATED, False),
        (Sweep(concurrencies=(1, 1024)), True),
        (Restarts(restarts=2, windows=2, concurrency=1024), True),
    ],
)
def test_no_request_times_out_during_a_closed_loop(monkeypatch, run, is_longer, timeout_s):
    opened = Mock(return_value=nullcontext(SimpleNamespace(name="a", prompt=True)))
    monkeypatch.setattr(clients, "Client", opened)
    task = measure_task(tenant("a"), run=run, search=PRESETS["standard"].settings)
    cell = Mock(task=task, server_cores=[], client_cores=[0])
    cell.inputs.trace = None
    route = Route("grpc", "nowhere:1", "a", (), timeout_s)
    server, tenants = RunningServer("", "", "", os.getpid()), [Mock(steps=())]
    tenants[0].name = "a"
    with under_load(cell, server, tenants, {"a": route}):
        pass
    least_s = loop_s(task.search, task.slas)
    assert 5 < least_s < 60
    assert opened.call_args.args[1].timeout_s == (
        max(timeout_s, least_s) if is_longer else timeout_s
    )


def test_the_first_message_of_each_kind_of_error_is_kept_over_several_servers(tmp_path):
    raw = RawResults(
        RequestsWriter(tmp_path / "requests.parquet"),
        MonitorFile(tmp_path / "monitor.parquet"),
        errors={"a": {}, "b": {}},
    )
    raw.add_errors({"a": {"error": "first"}, "b": {}})
    raw.add_errors({"a": {"error": "second", "timeout": "late"}})
    assert raw.errors == {"a": {"error": "first", "timeout": "late"}, "b": {}}


def test_windows_are_numbered_through_all_servers_of_a_cell(tmp_path):
    path = tmp_path / "requests.parquet"
    times_ns = np.arange(3)
    part = Requests(times_ns, times_ns, times_ns, np.full(3, Status.OK, np.uint8))
    with RequestsWriter(path) as writer:
        assert [writer.add(["a", "b"], [part, part]) for _ in range(2)] == [0, 1]
    assert pq.read_table(path)["window"].to_pylist() == [0] * 6 + [1] * 6


def test_a_window_is_taken_apart_by_the_servers_counters():
    n = 10
    part = Requests(
        intended_ns=np.arange(n) * 10**9,
        sent_ns=np.arange(n) * 10**9,
        done_ns=np.arange(n) * 10**9 + 12_000_000,
        status=np.full(n, Status.OK, np.uint8),
    )
    before = ServerTimes(5, 0, 0, 0, 0)
    after = ServerTimes(15, 20_000_000, 5_000_000, 70_000_000, 3_000_000)
    found = decompose(before, after, part)
    assert (found.queue_ms, found.compute_ms) == (2.0, 7.0)
    assert (found.compute_input_ms, found.compute_output_ms) == (0.5, 0.3)
    assert found.client_ms == pytest.approx(12 - 2 - 0.5 - 7 - 0.3)
    other = decompose(before, ServerTimes(16, 0, 0, 0, 0), part)
    assert np.isnan(other.queue_ms)  # the server also worked on cancelled requests


def test_other_cpu_share_is_the_work_of_the_cores_beyond_the_server():
    before, after = CpuReading(100, 1000, 40, {}), CpuReading(180, 1100, 90, {})
    assert other_cpu_share(before, after) == pytest.approx(0.3)
    assert other_cpu_share(before, before) == 0
    child_ended = replace(after, used=0)
    assert other_cpu_share(before, child_ended) == pytest.approx(0.8)
