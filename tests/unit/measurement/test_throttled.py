"""Tests of the outcome and the message after a CPU quota stopped the server."""

from __future__ import annotations

import pytest
from measure_tasks import measure_task, server, tenant

from perseus.host.cpu_quota import CpuQuota
from perseus.measurement import throttled
from perseus.measurement.cell import Findings
from perseus.measurement.throttled import QuotaWatch
from perseus.peak.outcome import Outcome

TASK = measure_task(tenant("a"))


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Return the folder of this process's control group, with a quota of two cores."""
    monkeypatch.setattr(throttled, "read_quota", lambda: CpuQuota(2.0, tmp_path))
    counted(tmp_path, 1000, 900)
    return tmp_path


def counted(group, periods, stopped):
    (group / "cpu.stat").write_text(f"nr_periods {periods}\nnr_throttled {stopped}\n")


def named(watch, outcome, task=TASK):
    found = Findings({"outcome": outcome, "reason": "it was slow", "estimate_scale": 1.0}, 7)
    named = watch.named(found, task)
    assert named.watched_window == 7 and named.record["estimate_scale"] == 1.0
    return named.outcome, named.record["reason"], named.record["throttled"]


SAID = "the CPU quota of 2 cores stopped server and client in 30% of the quota periods"


@pytest.mark.parametrize("outcome", ["unsteady", "disturbed", "client_limited"])
def test_what_a_quota_explains_is_not_laid_at_another_door(group, outcome):
    watch = QuotaWatch.begin()
    counted(group, 1100, 930)
    assert named(watch, outcome) == (Outcome.THROTTLED, f"{SAID} (it was slow)", SAID)


@pytest.mark.parametrize("outcome", ["ok", "uncertified", "infeasible", "failed", "blocked"])
def test_other_outcomes_stand_and_the_quota_is_told(group, outcome):
    watch = QuotaWatch.begin()
    counted(group, 1100, 930)
    assert named(watch, outcome) == (Outcome(outcome), "it was slow", SAID)


def test_a_quota_that_hardly_ever_stops_anybody_explains_nothing(group):
    watch = QuotaWatch.begin()
    counted(group, 1100, 901)
    assert named(watch, "unsteady") == (Outcome.UNSTEADY, "it was slow", None)


def test_no_quota_explains_nothing(monkeypatch):
    monkeypatch.setattr(throttled, "read_quota", lambda: None)
    assert named(QuotaWatch.begin(), "disturbed") == (Outcome.DISTURBED, "it was slow", None)


def test_beside_a_remote_server_it_is_the_clients_quota(group):
    watch = QuotaWatch.begin()
    counted(group, 1100, 930)
    remote = {"host": "far", "http": "far:8000", "grpc": "far:8001"}
    task = measure_task(tenant("a"), server=server(launcher="remote", remote=remote))
    _, _, output = named(watch, "client_limited", task)
    assert output == SAID.replace("server and client", "the client")


def test_trouble_by_a_quota_may_pass_and_a_limit_in_spite_of_it_is_one():
    assert Outcome.THROTTLED.is_temporary and not Outcome.THROTTLED.is_result
    found = Findings({"outcome": "throttled", "estimate_scale": 1.0, "posterior_scales": [1.0]})
    assert found.has_limit
