"""Tests of soaks: rates, number of windows, readings, and causes of an early end."""

from __future__ import annotations

import os
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from measure_tasks import measure_task, tenant

from perseus.measurement.cell import BlockedError
from perseus.measurement.experiments import soak
from perseus.peak.verdict import ON_BUSY_HOST, Verdict
from perseus.serving.failures import ServerError
from perseus.study.experiments.soak import Run
from perseus.traffic.client import ClientError

WINDOW_S = 10.0
GIVEN = Run(name="soak", duration_s=50, window_s=WINDOW_S, rates_rps=(5.0, 8.0))
SHARES = Run(name="soak", duration_s=50, window_s=WINDOW_S, percents_of_peak=(40, 25))
WINDOWS, ELAPSED_S = 5, 11.1
"""Number of windows, and seconds per window, including the settling time and the wait for late
responses."""


class Server:
    """A server under load that ends in the window `dies`.

    The host disturbs the windows in `invalid`.
    """

    death: Exception = ServerError("the server ended during the measurement")

    def __init__(self, monkeypatch, pid=None, dies=None, invalid=(), dedicated=None, blocked=""):
        self.pid, self.dies, self.invalid = pid, dies, invalid
        self.offered, self.kept, self.starts = [], [], 0
        monkeypatch.setattr(soak, "server_under_test", self.server_under_test)
        monkeypatch.setattr(soak, "open_loop", self.open_loop)
        monkeypatch.setattr(soak, "keep", lambda *arguments: self.kept.append(arguments[2:]))
        found = SimpleNamespace(rps=dedicated or {}, why_blocked=lambda needed: blocked)
        read = SimpleNamespace(read=lambda records: found)
        monkeypatch.setattr(soak, "DedicatedPeaks", read)

    @contextmanager
    def server_under_test(self, cell):
        @contextmanager
        def under_load():
            yield self

        self.starts += 1
        server = SimpleNamespace(pid=self.pid)
        yield SimpleNamespace(record={"startup_s": 1.0}, under_load=under_load, server=server)

    def open_loop(self, task, system, phase, rates_rps, elapsed_s, tolerance):
        assert (system, phase, tolerance) == (self, "soak", ON_BUSY_HOST)
        assert elapsed_s == pytest.approx(ELAPSED_S)
        if len(self.offered) == self.dies:
            raise self.death
        is_invalid = len(self.offered) in self.invalid
        self.offered.append(tuple(rates_rps))
        good = SimpleNamespace(verdict=Verdict.FAIL, reason="a soak does not test the SLA")
        why = f"other processes, {len(self.offered)}"
        bad = SimpleNamespace(verdict=Verdict.INVALID, reason=why, disturbed=True)
        tenants = (good, bad) if is_invalid else (good, good)
        return SimpleNamespace(
            elapsed_s=ELAPSED_S,
            tenants=tenants,
            verdict=Verdict.FAIL,
            invalid_tenants=(bad,) if is_invalid else (),
        )


def measured(run=GIVEN):
    task = measure_task(tenant("a"), tenant("b"), run=run)
    inputs = SimpleNamespace(dedicated_records=[])
    return soak.measure(SimpleNamespace(task=task, inputs=inputs, say=lambda text: None)).record


def test_given_rates_are_offered_until_the_time_is_over(monkeypatch):
    server = Server(monkeypatch, pid=os.getpid())
    record = measured()
    assert server.offered == [(5.0, 8.0)] * WINDOWS
    assert [left for _, left in server.kept] == pytest.approx([44.4, 33.3, 22.2, 11.1, 0])
    assert (record["outcome"], record["reason"], record["startup_s"]) == ("ok", "", 1.0)
    assert record["rates_rps"] == {"a": 5.0, "b": 8.0}
    assert len(record["readings"]) == WINDOWS
    times = [each["time_ns"] for each in record["readings"]]
    assert times == sorted(times)
    assert all(each["memory_bytes"] > 2**20 for each in record["readings"])
    assert all(each["open_files"] >= 3 for each in record["readings"])


def test_shares_are_of_each_tenants_own_peak(monkeypatch):
    server = Server(monkeypatch, dedicated={"b": 200.0, "a": 50.0})
    assert measured(SHARES)["rates_rps"] == {"a": 20.0, "b": 50.0}
    assert set(server.offered) == {(20.0, 50.0)}


def test_shares_of_a_peak_that_was_not_found_are_not_offered(monkeypatch):
    nan = float("nan")
    server = Server(monkeypatch, dedicated={"a": 50.0, "b": nan}, blocked="not found: b.peak.r1")
    with pytest.raises(BlockedError, match=r"^not found: b\.peak\.r1$"):
        measured(SHARES)
    assert (server.starts, server.offered) == (0, [])


@pytest.mark.parametrize("pid", [None, 2**22 + 1], ids=["elsewhere", "dead"])
def test_what_a_server_that_is_not_here_holds_is_unknown(monkeypatch, pid):
    Server(monkeypatch, pid=pid)
    assert {(each["memory_bytes"], each["open_files"]) for each in measured()["readings"]} == {
        (None, None)
    }


def test_a_server_that_dies_under_the_load_is_an_answer(monkeypatch):
    server = Server(monkeypatch, pid=os.getpid(), dies=3)
    record = measured()
    assert record["outcome"] == "infeasible" and not soak.Outcome("infeasible").is_temporary
    assert record["reason"] == "the server ended during the measurement, after 0.0092 h of load"
    assert len(record["readings"]) == len(server.kept) == 3


def test_a_client_that_dies_is_trouble_that_keeps_the_readings_before(monkeypatch):
    server = Server(monkeypatch, pid=os.getpid(), dies=3)
    server.death = ClientError("the client of a died")
    record = measured()
    assert record["outcome"] == "failed"
    assert record["reason"] == "the client of a died, after 0.0092 h of load"
    assert len(record["readings"]) == len(server.kept) == 3


def test_one_that_dies_at_once_is_trouble_that_may_pass(monkeypatch):
    Server(monkeypatch, dies=0)
    record = measured()
    assert (record["outcome"], record["reason"]) == (
        "failed",
        "the server ended during the measurement",
    )


@pytest.mark.parametrize(("invalid", "outcome"), [((0, 1), "ok"), ((0, 1, 4), "disturbed")])
def test_most_windows_must_say_something_of_the_server(monkeypatch, invalid, outcome):
    Server(monkeypatch, invalid=invalid)
    record = measured()
    assert record["outcome"] == outcome
    if invalid[-1] == 4:
        reason = "3 of 5 windows are invalid; one of the reasons: other processes, 5"
        assert record["reason"] == reason
