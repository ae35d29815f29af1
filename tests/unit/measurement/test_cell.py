"""How a cell gets its load line, and what the server's counters say of a window."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from perseus.host.procfs import CpuReading, foreign_share
from perseus.measurement.cell import arrivals, settings
from perseus.measurement.decomposition import decompose
from perseus.measurement.load_lines import dedicated_peaks, load_line
from perseus.serving.statistics import ServerTimes
from perseus.study.plan import plain
from perseus.study.presets import PRESETS
from perseus.traffic.arrivals import Arrivals
from perseus.traffic.requests import Requests, Status

PEAKS = {"a": 100.0, "b": 40.0}
UNLOADED = {"a": np.array([5.0, 5.0, 50.0])}


def line(**spec):
    return load_line({"weights": [], "held": "", "held_percent": 0, **spec}, ["a", "b"], PEAKS, {})


def test_a_dedicated_line_counts_in_requests_per_second():
    found, start = load_line({"kind": "dedicated"}, ["a"], {}, UNLOADED)
    assert found.rates_rps(12) == (12.0,)
    assert start == pytest.approx(0.6 * 1000 / 5)


def test_a_mix_at_scale_1_is_what_dedicated_servers_carry():
    found, _ = line(kind="mix", weights=[3, 1])
    assert found.rates_rps(1) == (75.0, 10.0)
    shares = [rate / PEAKS[name] for name, rate in zip("ab", found.rates_rps(0.8), strict=True)]
    assert sum(shares) == pytest.approx(0.8)


def test_a_held_tenant_stays_and_the_other_rises():
    found, start = line(kind="hold", held="b", held_percent=25)
    assert found.rates_rps(0.0) == (0.0, 10.0)
    assert found.rates_rps(0.75) == (75.0, 10.0)
    assert start < 0.75


def record(folder: Path, number: int, outcome: str, scale: float | None) -> Path:
    path = folder / f"{number}.json"
    cell = {"tenants": [{"name": "a"}]}
    path.write_text(json.dumps({"cell": cell, "outcome": outcome, "estimate_scale": scale}))
    return path


def test_a_dedicated_peak_is_the_mean_of_the_repeats_that_found_one(tmp_path):
    good = [record(tmp_path, 1, "ok", 90.0), record(tmp_path, 2, "uncertified", 110.0)]
    bad = [record(tmp_path, 3, "failed", None), record(tmp_path, 4, "client_limited", 5.0)]
    assert dedicated_peaks(good + bad) == {"a": 100.0}
    assert np.isnan(dedicated_peaks(bad)["a"])


def test_settings_survive_the_way_through_the_workflow():
    for preset in PRESETS.values():
        assert settings(plain(preset.settings)) == preset.settings


def test_a_cell_has_the_arrivals_of_its_slice(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("time_s\n0\n1\n3\n")
    gamma, replayed = ({"arrivals": {"process": p, "cv": 2.0}} for p in ("gamma", "trace"))
    assert arrivals(gamma, None) == Arrivals("gamma", 2.0)
    assert arrivals(replayed, trace) == Arrivals("trace", 2.0, (1.0, 2.0))


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
    assert np.isnan(other.queue_ms)  # the server also worked on requests that were cancelled


def test_foreign_work_is_what_the_cores_did_beyond_the_server():
    before, after = CpuReading(100, 1000, 40), CpuReading(180, 1100, 90)
    assert foreign_share(before, after) == pytest.approx(0.3)
    assert foreign_share(before, before) == 0
