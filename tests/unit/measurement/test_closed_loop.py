"""Tests of the verdicts on the windows of closed loops, which have no SLA."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from measure_tasks import measure_task, tenant

from perseus.measurement.closed_loop import closed_loop
from perseus.peak.system import Observation
from perseus.peak.verdict import NO_SLA, Verdict
from perseus.study.sla import Sla
from perseus.traffic.requests import Requests, Status

START_NS = 10**9
STEADY, STARVED = Status.OK, Status.PENDING


def requests_of_loop(seconds: float, status: Status) -> Requests:
    """Return a closed loop whose requests take 0.1 s each, or only one request that never ends."""
    count = int(seconds / 0.1) if status is STEADY else 1
    sent_ns = START_NS + np.arange(count) * 10**8
    done_ns = sent_ns + 10**8 if status is STEADY else np.zeros(1, np.int64)
    return Requests(sent_ns, sent_ns, done_ns, np.full(count, status, np.uint8))


class System:
    """A system with two tenants in a closed loop, with these outcomes of requests and CPU loads of
    their clients."""

    def __init__(self, outcomes=(STEADY, STEADY), client_cpu=(0.1, 0.1)):
        self.outcomes, self.client_cpu = outcomes, client_cpu

    def offer_closed(self, in_flight, duration_s):
        requests = tuple(requests_of_loop(duration_s, each) for each in self.outcomes)
        seen = Observation(START_NS, duration_s, requests, self.client_cpu)
        return nullcontext(SimpleNamespace(until=lambda elapsed_s: seen))


def window_on(system: System, latency_ms: float):
    sla = Sla(latency_ms=latency_ms)
    task = measure_task(tenant("a", sla=sla), tenant("b", sla=sla))
    return closed_loop(task, system, "concurrency", 1)[0]


@pytest.mark.parametrize("latency_ms", [50, 500])
def test_a_closed_loop_neither_keeps_nor_misses_an_sla(latency_ms):
    window = window_on(System(), latency_ms)
    assert [each.verdict for each in window.tenants] == [Verdict.UNDECIDED] * 2
    assert {each.reason for each in window.tenants} == {NO_SLA}


def test_a_limited_client_makes_the_loop_invalid_however_slow_the_other_tenant_is():
    """All requests are late. The verdict still says that the client was the limit."""
    window = window_on(System(client_cpu=(0.95, 0.1)), latency_ms=50)
    assert window.verdict is Verdict.INVALID


def test_a_tenant_that_the_server_does_not_answer_does_not_pass():
    window = window_on(System(outcomes=(STEADY, STARVED)), latency_ms=50)
    assert window.tenants[1].offered_rps == 0
    assert window.tenants[1].verdict is Verdict.UNDECIDED
