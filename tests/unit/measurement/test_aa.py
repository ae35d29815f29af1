"""Tests of A/A experiments, which repeat equal windows: number of servers, and early ends."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from measure_tasks import measure_task, tenant

from perseus.measurement.experiments import aa
from perseus.peak.verdict import ON_BUSY_HOST, ON_IDLE_HOST, Verdict
from perseus.serving.failures import ServerError
from perseus.study.experiments.aa import Run
from perseus.traffic.client import ClientError

RUN = Run(restarts=3, windows=2, concurrency=4)


class Servers:
    """Fake servers whose windows have throughputs of 10, 11, 12… requests/s for each of two
    tenants.

    `invalid` has the windows that the host (if `by_host`) or the client makes invalid. The server
    with number `dies` ends under load, and the server with number `refuses` does not start.
    """

    death: Exception = ServerError("the server ended during the measurement")

    def __init__(self, monkeypatch, invalid=(), by_host=True, dies=None, refuses=None):
        self.invalid, self.by_host, self.dies, self.refuses = invalid, by_host, dies, refuses
        self.tolerances = []
        self.started, self.loops, self.kept = 0, [], []
        monkeypatch.setattr(aa, "server_under_test", self.server_under_test)
        monkeypatch.setattr(aa, "closed_loop", self.closed_loop)
        monkeypatch.setattr(aa, "keep", lambda *arguments: self.kept.append(arguments[2:]))

    @contextmanager
    def server_under_test(self, cell):
        self.started += 1
        if self.started == self.refuses:
            raise ServerError("it does not start")

        @contextmanager
        def under_load():
            yield SimpleNamespace(number=self.started)

        yield SimpleNamespace(record={"startup_s": float(self.started)}, under_load=under_load)

    def closed_loop(self, task, system, phase, concurrency, tolerance):
        self.tolerances.append(tolerance)
        if system.number == self.dies:
            raise self.death
        rate = 10.0 + len(self.loops)
        is_invalid = len(self.loops) in self.invalid
        self.loops.append((system.number, phase, concurrency))
        slow = "too slow for its SLA"
        good = SimpleNamespace(verdict=Verdict.FAIL, reason=slow, offered_rps=rate)
        bad = SimpleNamespace(verdict=Verdict.INVALID, reason="why", disturbed=self.by_host)
        bad_ones = (bad,) if is_invalid else ()
        tenants = (good, *bad_ones, good)[:2]
        window = SimpleNamespace(
            elapsed_s=2.0, tenants=tenants, invalid_tenants=bad_ones, host_is_busy=False
        )
        return window, [SimpleNamespace(answered_rps=rate)] * 2


def measured():
    task = measure_task(tenant("a"), tenant("b"), run=RUN)
    return aa.measure(SimpleNamespace(task=task, say=lambda text: None)).record


def test_the_first_window_of_each_server_does_not_count(monkeypatch):
    servers = Servers(monkeypatch)
    record = measured()
    assert record["capacities_rps"] == [[22.0, 24.0], [28.0, 30.0], [34.0, 36.0]]
    assert servers.loops == [(n, "aa", 4) for n in (1, 2, 3) for _ in range(3)]
    assert (record["outcome"], record["reason"], record["startup_s"]) == ("ok", "", 3.0)
    assert [left for _, left in servers.kept] == [2.0 * n for n in reversed(range(9))]


def test_an_invalid_window_is_tried_again_at_last_with_more_load_of_other_processes(monkeypatch):
    servers = Servers(monkeypatch, invalid=(1, 2))
    record = measured()
    assert record["outcome"] == "ok" and record["capacities_rps"][0] == [26.0, 28.0]
    assert servers.tolerances[:4] == [ON_IDLE_HOST, ON_IDLE_HOST, ON_IDLE_HOST, ON_BUSY_HOST]


@pytest.mark.parametrize("by_host, outcome", [(True, "disturbed"), (False, "client_limited")])
def test_a_window_that_is_always_invalid_is_no_noise_of_the_server(monkeypatch, by_host, outcome):
    Servers(monkeypatch, invalid=(4, 5, 6), by_host=by_host)
    record = measured()
    assert (record["outcome"], record["reason"]) == (outcome, "why")
    assert len(record["capacities_rps"]) == 1


@pytest.mark.parametrize("how", ["dies", "refuses"])
def test_a_server_that_fails_ends_the_cell_and_keeps_those_before_it(monkeypatch, how):
    Servers(monkeypatch, **{how: 2})
    record = measured()
    assert record["outcome"] == "failed" and record["reason"].startswith("server 2: ")
    assert len(record["capacities_rps"]) == 1 and "startup_s" in record


def test_a_client_that_dies_keeps_the_servers_before_it(monkeypatch):
    Servers(monkeypatch, dies=2).death = ClientError("the client of a died")
    record = measured()
    assert (record["outcome"], record["reason"]) == ("failed", "server 2: the client of a died")
    assert len(record["capacities_rps"]) == 1


def test_a_first_server_that_does_not_start_is_no_record(monkeypatch):
    Servers(monkeypatch, refuses=1)
    with pytest.raises(ServerError, match="does not start"):
        measured()
