"""Tests of the power of a window, from energy counters or power samples of GPUs and the host."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from perseus.measurement.energy import host_watts, window_watts
from perseus.measurement.monitor import as_table
from perseus.measurement.samples import Row

START_NS = 10**12
WINDOW = {"window": 3, "start_ns": START_NS + 10 * 10**9, "settle_s": 2.0, "elapsed_s": 12.0}
# The GPU uses 250 W in the 10 s of the window, and 100 W outside the window.
TIMES_S = np.arange(0, 31, 1.0) + 0.4


def watts(times_s):
    return np.where((times_s > 12) & (times_s < 22), 250.0, 100.0)


def joules_until(time_s: float) -> float:
    return 100 * time_s + 150 * float(np.clip(time_s - 12, 0, 10))


def samples(gpu: int, *metrics: str, times_s=TIMES_S) -> list[Row]:
    rows, before_s = [], times_s[0] - 1
    for time_s in times_s:
        values = {
            "gpu_energy_joules": joules_until(time_s) - joules_until(before_s),
            "host_energy_joules": joules_until(time_s) - joules_until(before_s),
            "gpu_power_watts": float(watts(time_s)),
        }
        now_ns = START_NS + round(time_s * 1e9)
        rows += [Row(now_ns, metric, None, values[metric], gpu) for metric in metrics]
        rows.append(Row(now_ns, "server_cores_busy", None, 0.5))
        before_s = time_s
    return rows


def of(tmp_path: Path, rows: list[Row], window: int = 3) -> float | None:
    path = tmp_path / "monitor.parquet"
    pq.write_table(as_table(rows), path)
    return window_watts(path, [WINDOW], window)


def test_the_counter_gives_the_energy_of_the_part_that_counts(tmp_path):
    # Perseus interpolates the energy linearly within a sample. The power changes within the samples
    # at both ends of the window, so the mean is 7.2 W too low.
    assert of(tmp_path, samples(0, "gpu_energy_joules")) == pytest.approx(250, abs=9)


def test_the_gpus_of_a_server_add_up(tmp_path):
    one = of(tmp_path, samples(0, "gpu_energy_joules"))
    two = of(tmp_path, samples(0, "gpu_energy_joules") + samples(1, "gpu_energy_joules"))
    assert two == pytest.approx(2 * one)


def test_a_gpu_without_the_counter_is_integrated_and_the_counter_is_preferred(tmp_path):
    assert of(tmp_path, samples(0, "gpu_power_watts")) == pytest.approx(250, abs=15)
    wrong = [row._replace(value=7.0) for row in samples(0, "gpu_power_watts")
             if row.metric == "gpu_power_watts"]  # fmt: skip
    counter = samples(0, "gpu_energy_joules")
    assert of(tmp_path, counter + wrong) == of(tmp_path, counter)


def test_nothing_is_told_of_what_was_not_seen(tmp_path):
    assert of(tmp_path, samples(0)) is None  # no GPU
    assert of(tmp_path, samples(0, "gpu_energy_joules"), window=-1) is None
    late = samples(0, "gpu_energy_joules", times_s=TIMES_S[14:])
    assert of(tmp_path, late) is None
    early = samples(0, "gpu_energy_joules", times_s=TIMES_S[:20])
    assert of(tmp_path, early) is None
    half = samples(0, "gpu_energy_joules") + samples(1, "gpu_power_watts",
                                                     times_s=TIMES_S[:3])  # fmt: skip
    assert of(tmp_path, half) is None  # energy of one of two GPUs


def of_host(tmp_path: Path, rows: list[Row], window: int = 3) -> float | None:
    path = tmp_path / "monitor.parquet"
    pq.write_table(as_table(rows), path)
    return host_watts(path, [WINDOW], window)


def test_the_host_has_a_power_of_its_own(tmp_path):
    host = [row._replace(gpu=None) for row in samples(0, "host_energy_joules")]
    assert of_host(tmp_path, host) == pytest.approx(250, abs=9)
    assert of_host(tmp_path, host + samples(0, "gpu_energy_joules")) == of_host(tmp_path, host)
    assert of(tmp_path, host) is None  # no GPU


def test_nothing_is_told_of_a_host_that_was_not_seen(tmp_path):
    host = [row._replace(gpu=None) for row in samples(0, "host_energy_joules")]
    assert of_host(tmp_path, samples(0, "gpu_energy_joules")) is None
    assert of_host(tmp_path, host, window=-1) is None
    assert of_host(tmp_path, [row for row in host if row.time_ns < WINDOW["start_ns"]]) is None
    unreadable = [row for row in host if not 14 < (row.time_ns - START_NS) / 1e9 < 18]
    lost = samples(0, "host_energy_joules", times_s=TIMES_S[[*range(14), *range(18, 31)]])
    assert len(lost) == len(unreadable)
    # The first sample after a gap contains the energy of the whole gap.
    gap = [row._replace(gpu=None) for row in lost]
    assert of_host(tmp_path, gap) == pytest.approx(of_host(tmp_path, host), abs=1)
