"""Tests of the experiment `slowdown`: rates, cost of invalid windows, and early ends."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from measure_tasks import measure_task, tenant
from test_procedures import record as dedicated_record

from benchmarks.simulation import SimulatedServer, deterministic
from perseus.measurement.cell import BlockedError
from perseus.measurement.experiments import slowdown
from perseus.peak.durations import PATIENCE_S, loop_s
from perseus.serving.failures import ServerError
from perseus.study.experiments.slowdown import Run
from perseus.traffic.client import ClientError

RATE = Run(name="slowdown-20rps", percent_of_peak=None, rate_rps=20.0, rounds=2)
SHARE = Run(name="slowdown-30", percent_of_peak=30, rate_rps=None, rounds=2)
STEPS = 2 * 5
"""Number of windows with two tenants in two rounds."""


class System(SimulatedServer):
    """A simulated server. The client is overloaded in the windows in `invalid`.

    The server dies in the window `dies`. Other processes always use the share `other_cpu_share` of
    the server's core.
    """

    death: Exception = ServerError("the server ended during the measurement")

    def __init__(self, invalid=(), dies=None, other_cpu_share=0.0):
        super().__init__([deterministic(0.004), deterministic(0.008)], np.random.default_rng(0))
        self.invalid, self.dies, self.offers = invalid, dies, []
        self.other_cpu_share = other_cpu_share
        self.starts = 0

    def wait_until_idle(self, other_load):
        """Return whether the host is idle.

        The call ends other processes that use more than four fifths of the server's core.
        """
        if self.other_cpu_share > 0.8:
            self.other_cpu_share = 0.0
        return self.other_cpu_share <= other_load

    @contextmanager
    def offer(self, rates_rps, duration_s):
        number = len(self.offers)
        self.offers.append(tuple(rates_rps))
        if number == self.dies:
            raise self.death
        with super().offer(rates_rps, duration_s) as load:
            busy = (0.95,) * len(rates_rps) if number in self.invalid else (0.1,) * len(rates_rps)
            others = {"client_cpu": busy, "other_cpu_share": self.other_cpu_share}
            yield SimpleNamespace(until=lambda s: replace(load.until(s), **others))


def measured(monkeypatch, system, run=RATE, records=()):
    """Return the record of two tenants on this system, and the reported remaining seconds."""
    left, task = [], measure_task(tenant("a"), tenant("b"), run=run)

    @contextmanager
    def under_load():
        yield system

    @contextmanager
    def under_test(cell):
        system.starts += 1
        yield SimpleNamespace(record={"startup_s": 1.0}, under_load=under_load)

    monkeypatch.setattr(slowdown, "server_under_test", under_test)
    monkeypatch.setattr(slowdown, "closed_loop", lambda *arguments: (None, []))
    monkeypatch.setattr(slowdown, "keep", lambda cell, system, window, left_s: left.append(left_s))
    cell = SimpleNamespace(
        task=task,
        inputs=SimpleNamespace(dedicated_records=records),
        own_stream=np.random.default_rng(2),
        say=lambda text: None,
    )
    return slowdown.measure(cell).record, left


def test_all_tenants_have_the_rate_that_is_asked_for(monkeypatch):
    system = System()
    found, left = measured(monkeypatch, system)
    assert (found["outcome"], found["reason"], found["startup_s"]) == ("ok", "", 1.0)
    assert found["rates_rps"] == {"a": 20.0, "b": 20.0}
    assert len(system.offers) == len(found["steps"]) == STEPS
    assert [step["round"] for step in found["steps"]] == [1] * 5 + [2] * 5
    for offered, step in zip(system.offers, found["steps"], strict=True):
        loaded = dict.fromkeys(step["tenants"], 20.0)
        assert dict(zip("ab", offered, strict=True)) == {"a": 0.0, "b": 0.0} | loaded
        assert set(step["seen"]) == set(loaded)
    # The reported remaining time falls after each window, to 0 after the last window.
    assert left[-1] == 0 and np.all(np.diff(left) < 0)


def test_a_share_is_of_each_tenants_dedicated_peak(monkeypatch, tmp_path):
    records = [
        dedicated_record(tmp_path, 1, "ok", 90.0),
        dedicated_record(tmp_path, 2, "uncertified", 40.0, tenant("b")),
    ]
    found, _ = measured(monkeypatch, System(), SHARE, records)
    assert found["rates_rps"] == pytest.approx({"a": 27.0, "b": 12.0})
    assert found["dedicated_rps"] == {"a": 90.0, "b": 40.0}


def test_without_a_dedicated_peak_it_is_blocked_by_the_cell_that_should_have_found_it(
    monkeypatch, tmp_path
):
    records = [
        dedicated_record(tmp_path, 1, "ok", 90.0),
        dedicated_record(tmp_path, 2, "infeasible", None, tenant("b")),
    ]
    system = System()
    with pytest.raises(BlockedError, match=r"did not find: b\.peak\.r2 \(infeasible\)$"):
        measured(monkeypatch, system, SHARE, records)
    assert system.starts == 0


def test_a_window_says_what_the_tenants_latencies_were(monkeypatch):
    """A service time of 4 ms and hardly any queue time."""
    found, _ = measured(monkeypatch, System(), RATE.model_copy(update={"rounds": 20}))
    alone = [step["seen"]["a"] for step in found["steps"] if step["tenants"] == ("a",)]
    usual = np.mean([seen["mean_ms"]["value"] for seen in alone])
    waits_ms = 4 * 0.08 / (2 * (1 - 0.08))  # M/D/1 (Pollaczek-Khinchine)
    assert usual == pytest.approx(4 + waits_ms, rel=0.03)
    for seen in alone:
        assert seen["completed_ratio"] == 1 and seen["requests"] > 20
        assert seen["mean_ms"]["low"] <= seen["mean_ms"]["value"] <= seen["mean_ms"]["high"]
        assert 4 <= seen["p95_ms"]["value"] < 12


def test_an_invalid_window_is_tried_again(monkeypatch):
    system = System(invalid=(2, 3))
    found, left = measured(monkeypatch, system)
    assert len(system.offers) == STEPS + 2
    assert len(left) == 1 + len(system.offers)  # including the warm-up
    assert len(set(system.offers[2:5])) == 1
    assert {step["outcome"] for step in found["steps"]} == {"ok"}


def test_where_there_is_no_quiet_the_last_attempt_stands(monkeypatch):
    found, _ = measured(monkeypatch, System(other_cpu_share=0.3))
    assert found["outcome"] == "ok" and all(step["seen"] for step in found["steps"])
    found, _ = measured(monkeypatch, System(other_cpu_share=0.6))
    assert found["outcome"] == "disturbed"
    system = System(other_cpu_share=0.9)  # these processes end while Perseus waits
    found, _ = measured(monkeypatch, system)
    assert found["outcome"] == "ok" and len(system.offers) == STEPS + 3


def test_a_step_that_is_always_invalid_says_so_and_the_rest_goes_on(monkeypatch):
    found, _ = measured(monkeypatch, System(invalid=(2, 3, 4)))
    outcomes = [step["outcome"] for step in found["steps"]]
    assert outcomes == ["ok"] * 2 + ["client_limited"] + ["ok"] * (STEPS - 3)
    assert "95% of its core" in found["steps"][2]["reason"] and not found["steps"][2]["seen"]
    assert found["outcome"] == "ok"


def test_where_no_pair_could_be_measured_the_cell_says_why(monkeypatch):
    found, _ = measured(monkeypatch, System(invalid=range(100)))
    assert found["outcome"] == "client_limited" and "95% of its core" in found["reason"]
    assert len(found["steps"]) == STEPS


@pytest.mark.parametrize("death", [System.death, ClientError("the client of a died")])
def test_a_server_or_client_that_dies_leaves_the_steps_before(monkeypatch, death):
    system = System(dies=4)
    system.death = death
    found, _ = measured(monkeypatch, system)
    assert (found["outcome"], found["reason"]) == ("failed", str(death))
    assert len(found["steps"]) == 4


def test_what_it_takes_is_known_beforehand():
    task = measure_task(tenant("a"), tenant("b"), run=SHARE)
    each_s = loop_s(task.search, task.slas)
    assert slowdown.load_s(task) == pytest.approx((11 * each_s, 41 * each_s + PATIENCE_S))
    slow = task.model_copy(update={"run": RATE.model_copy(update={"rate_rps": 1.0})})
    assert slowdown.load_s(slow)[0] > 400  # fifty requests in each window
