"""Tests of the monitor: readings of Triton's counters and of processes, and tolerated failures."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fake_nvml
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from perseus.host import powercap
from perseus.host.gpu import GpuError
from perseus.measurement.monitor import Monitor, MonitorFile
from perseus.measurement.monitor_schema import METRICS, MONITOR_SCHEMA
from perseus.measurement.samples import Sampler
from perseus.measurement.triton_metrics import Key, counter_increases, parse_metrics
from perseus.serving.running_server import RunningServer

pytestmark = pytest.mark.alone

METRICS_TEXT = """\
# HELP nv_inference_request_success Number of successful inference requests, all batch sizes
# TYPE nv_inference_request_success counter
nv_inference_request_success{{model="resnet50",version="1"}} {resnet50}
nv_inference_request_success{{model="inception_v3",version="1"}} 7
# HELP nv_inference_request_failure Number of failed inference requests, all batch sizes
# TYPE nv_inference_request_failure counter
nv_inference_request_failure{{model="resnet50",reason="OTHER",version="1"}} 2
nv_inference_request_failure{{model="resnet50",reason="REJECTED",version="1"}} 3
# HELP nv_inference_pending_request_count Instantaneous number of pending requests
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{{model="resnet50",version="1"}} 4
# HELP nv_cpu_utilization CPU utilization rate [0.0 - 1.0]
# TYPE nv_cpu_utilization gauge
nv_cpu_utilization 0.25
# HELP nv_pinned_memory_pool_used_bytes Pinned memory pool used memory size, in bytes
# TYPE nv_pinned_memory_pool_used_bytes gauge
nv_pinned_memory_pool_used_bytes 0
"""
SUCCESS = "nv_inference_request_success"


def test_metrics_are_read_per_model_and_summed_over_the_other_labels() -> None:
    scrape = parse_metrics(METRICS_TEXT.format(resnet50=100))
    assert scrape.counters == {
        (SUCCESS, "resnet50"): 100,
        (SUCCESS, "inception_v3"): 7,
        ("nv_inference_request_failure", "resnet50"): 5,
    }
    assert scrape.gauges == {
        ("nv_inference_pending_request_count", "resnet50"): 4,
        ("nv_cpu_utilization", None): 0.25,
    }


def test_increase_of_a_counter_also_across_a_reset() -> None:
    before: dict[Key, float] = {
        (SUCCESS, "grows"): 10.0,
        (SUCCESS, "rests"): 5.0,
        (SUCCESS, "reloaded"): 90.0,
    }
    after: dict[Key, float] = {
        (SUCCESS, "grows"): 25.0,
        (SUCCESS, "rests"): 5.0,
        (SUCCESS, "reloaded"): 3.0,
        (SUCCESS, "new"): 2.0,
    }
    assert counter_increases(before, after) == {
        (SUCCESS, "grows"): 15.0,
        (SUCCESS, "rests"): 0.0,
        (SUCCESS, "reloaded"): 3.0,
        (SUCCESS, "new"): 2.0,
    }


class FakeTriton(ThreadingHTTPServer):
    """A server whose counters grow by ten requests with each scrape. If `broken` is true, the
    server closes each connection without a response."""

    daemon_threads = True
    scrapes = 0
    broken = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/metrics"


class _Handler(BaseHTTPRequestHandler):
    server: FakeTriton
    protocol_version = "HTTP/1.1"  # as in Triton, the connection stays open

    def do_GET(self) -> None:
        if self.server.broken:
            self.close_connection = True
            self.connection.close()
            return
        self.server.scrapes += 1
        body = METRICS_TEXT.format(resnet50=self.server.scrapes * 10).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def triton() -> Iterator[FakeTriton]:
    with FakeTriton(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def spinning_process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as process:
        try:
            yield process
        finally:
            process.kill()


def serving(triton: FakeTriton, pid: int | None = None) -> RunningServer:
    return RunningServer("", "", triton.url, pid)


@contextmanager
def monitored(path: Path, *arguments: Any, **more: Any) -> Iterator[None]:
    with MonitorFile(path) as file, Monitor(file, *arguments, **more):
        yield


def values(path: Path, metric: str, tenant: str | None = None) -> list[float]:
    table = pq.read_table(path)
    keep = pc.equal(table["metric"].cast("string"), metric)
    if tenant is not None:
        keep = pc.and_(keep, pc.equal(table["tenant"], tenant))
    return table.filter(keep)["value"].to_pylist()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the energy counter of a host with one processor."""
    zone = tmp_path / "powercap" / "intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "energy_uj").write_text("1000000\n")
    counters = powercap.EnergyCounters
    monkeypatch.setattr(powercap, "EnergyCounters", lambda: counters(zone.parent))
    return zone / "energy_uj"


def test_file_has_the_schema_and_every_metric_has_a_meaning(
    tmp_path: Path, triton: FakeTriton, monkeypatch: pytest.MonkeyPatch, package: Path
) -> None:
    fake_nvml.install(monkeypatch, fake_nvml.FakeNvml())
    path = tmp_path / "monitor.parquet"
    with monitored(path, serving(triton, os.getpid()), [0], [0], period_s=0.3, gpus=[0, 1]):
        time.sleep(0.4)
    table = pq.read_table(path)
    assert table.schema.equals(MONITOR_SCHEMA, check_metadata=True)
    found = set(table["metric"].to_pylist())
    unexplained = [name for name in found if not any(fnmatchcase(name, key) for key in METRICS)]
    assert not unexplained
    fixed = {name for name in METRICS if "*" not in name}
    assert found >= fixed - {"client_cpu_cores"}  # without a separate client process
    for row in table.to_pylist():
        assert row["gpu"] in ((0, 1) if row["metric"].startswith("gpu_") else (None,))
    assert set(table["gpu"].to_pylist()) == {0, 1, None}


def test_a_monitor_of_a_gpu_that_is_not_there_is_not_made(
    tmp_path: Path, triton: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = fake_nvml.install(monkeypatch, fake_nvml.FakeNvml())
    with pytest.raises(GpuError, match="number of GPUs on this machine is 2 "):
        Monitor(MonitorFile(tmp_path / "monitor.parquet"), serving(triton), [], [0], gpus=[5])
    assert nvml.opened == 0
    assert not list(tmp_path.iterdir())


def test_increases_sum_to_what_the_server_counted(tmp_path: Path, triton: FakeTriton) -> None:
    path = tmp_path / "monitor.parquet"
    with monitored(path, serving(triton), [], [0], period_s=0.05):
        time.sleep(0.32)
    increases = values(path, SUCCESS, "resnet50")
    assert len(increases) >= 5
    assert sum(increases) == 10 * (triton.scrapes - 1)  # increases count from the first scrape
    assert sum(values(path, "scrape_failures")) == 0


def test_samples_keep_their_schedule(tmp_path: Path, triton: FakeTriton) -> None:
    path = tmp_path / "monitor.parquet"
    period_s = 0.1
    with monitored(path, serving(triton), [], [0], period_s):
        time.sleep(1.25)
    # leave out the last row, which covers a shorter period
    times_ns = sorted(set(pq.read_table(path)["time_ns"].to_pylist()))[:-1]
    phase_s = [(each - times_ns[0]) / 1e9 % period_s for each in times_ns]
    late_s = [min(each, period_s - each) for each in phase_s]
    assert len(times_ns) >= 10
    # with relative sleeps, the delay would grow from period to period
    assert sorted(late_s)[len(late_s) // 2] < 0.02


def test_a_server_that_dies_leaves_gaps_and_a_count(tmp_path: Path, triton: FakeTriton) -> None:
    path = tmp_path / "monitor.parquet"
    with (
        spinning_process() as process,
        monitored(path, serving(triton, process.pid), [0], [0], period_s=0.3),
    ):
        time.sleep(0.75)
        process.kill()
        triton.broken = True
        time.sleep(0.9)
    samples = len(values(path, "client_cpu_cores"))
    assert samples >= 4
    assert 1 <= len(values(path, "server_cpu_cores")) < samples
    assert 1 <= len(values(path, SUCCESS, "resnet50")) < samples
    assert sum(values(path, "scrape_failures")) >= 2


def test_server_is_not_counted_as_client(triton: FakeTriton) -> None:
    with spinning_process() as process:
        sampler = Sampler(serving(triton, process.pid), [0], [0])
        sampler.sample()
        time.sleep(0.5)
        rows = {row.metric: row.value for row in sampler.sample()}
        sampler.close()
    assert 0.2 < rows["server_cpu_cores"] < 1.2  # the server is also a child of this process
    assert rows["client_cpu_cores"] < 0.15
    assert rows["server_rss_bytes"] > 2**20
    assert rows["server_open_files"] >= 3  # stdin, stdout, stderr


@pytest.mark.parametrize(("server_cores", "joules"), [([0], [12.5]), ([], [])])
def test_the_energy_of_the_host_is_that_of_a_server_on_it(
    triton: FakeTriton, package: Path, server_cores: list[int], joules: list[float]
) -> None:
    sampler = Sampler(serving(triton), server_cores, [0])
    sampler.sample()
    package.write_text("13500000\n")
    rows = [row for row in sampler.sample() if row.metric == powercap.METRIC]
    sampler.close()
    assert [row.value for row in rows] == joules
    assert all(row.gpu is None and row.tenant is None for row in rows)


def test_file_is_complete_when_the_body_raises(tmp_path: Path, triton: FakeTriton) -> None:
    path = tmp_path / "monitor.parquet"
    with (
        pytest.raises(RuntimeError, match="planted"),
        monitored(path, serving(triton), [], [0], period_s=0.05),
    ):
        time.sleep(0.12)
        assert not path.exists()
        raise RuntimeError("planted")
    assert len(values(path, SUCCESS, "resnet50")) >= 1
    assert list(tmp_path.iterdir()) == [path]


def test_the_servers_of_a_cell_have_one_file(tmp_path: Path, triton: FakeTriton) -> None:
    path = tmp_path / "monitor.parquet"
    with MonitorFile(path) as file:
        for _ in range(2):
            with Monitor(file, serving(triton), [], [0], period_s=0.05):
                time.sleep(0.12)
    times_ns = pq.read_table(path)["time_ns"].to_pylist()
    assert times_ns == sorted(times_ns)
    # The counters of each server have their own base.
    assert sum(values(path, SUCCESS, "resnet50")) == 10 * (triton.scrapes - 2)


def test_a_cell_without_a_server_has_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "monitor.parquet"
    with MonitorFile(path):
        pass
    table = pq.read_table(path)
    assert table.num_rows == 0 and table.schema.equals(MONITOR_SCHEMA, check_metadata=True)


def test_a_fault_of_the_monitor_is_not_silent(
    tmp_path: Path, triton: FakeTriton, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: Sampler) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(Sampler, "sample", broken)
    with (
        pytest.raises(ZeroDivisionError, match="planted"),
        monitored(tmp_path / "monitor.parquet", serving(triton), [], [0]),
    ):
        pass
