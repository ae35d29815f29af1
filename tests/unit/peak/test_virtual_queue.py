"""Tests of the virtual queue: long runs, queue times, and draws of service times."""

import numpy as np
import pytest

from perseus.peak.lindley import departures_s
from perseus.peak.virtual_queue import LongRun, VirtualQueue
from perseus.traffic.arrivals import Arrivals

WORK_S = 0.005


@pytest.mark.parametrize("process", ["poisson", "gamma", "constant", "trace"])
@pytest.mark.parametrize("rates_rps", [(130.0,), (90.0, 30.0), (0.0, 120.0)])
def test_a_long_run_stands_for_every_rate(process, rates_rps):
    """A run at one request/s, scaled to another rate, equals a run drawn at this other rate."""
    arrivals = Arrivals(process, cv=1.5, gaps_s=(1.0, 0.2, 2.5, 0.7))
    work_s = np.random.default_rng(4).exponential(WORK_S, 500)
    queue = VirtualQueue((work_s, 1.2 * work_s)[: len(rates_rps)], (0.02, 0.03)[: len(rates_rps)])
    all_rps, requests = sum(rates_rps), 20_000
    shares = [rate / all_rps for rate in rates_rps]
    found = LongRun.of(queue, shares, arrivals, requests, run=2)
    times = [
        arrivals.times_s(rate, requests / all_rps, np.random.default_rng([2, i]))
        for i, rate in enumerate(rates_rps)
    ]
    drawn = queue.draw(times, draws=1, first=2)
    for tenant, spare_s in enumerate(queue.spare_s):
        late = queue.spent_s(drawn, tenant) > spare_s
        expected = late.mean() if late.size else 0.0
        assert found.late_share(tenant, all_rps) == pytest.approx(expected, abs=2 / requests)
        if rates_rps[tenant]:
            assert 0 < expected < 0.9


def test_each_tenant_waits_for_the_work_of_all():
    rng = np.random.default_rng(6)
    arrivals_s = [Arrivals().times_s(rate, 20, rng) for rate in (90.0, 40.0)]
    queue = VirtualQueue((np.full(5, 0.004), np.full(5, 0.010)), (0.02, 0.03))
    drawn = queue.draw(arrivals_s, draws=1)
    arrival, work = np.concatenate(arrivals_s), np.repeat([0.004, 0.010], [*map(len, arrivals_s)])
    order = np.argsort(arrival)
    waits = np.empty(len(arrival))
    waits[order] = departures_s(arrival[order], work[order]) - arrival[order] - work[order]
    for tenant, expected in enumerate(np.split(waits, [len(arrivals_s[0])])):
        (found,) = queue.spent_s(drawn, tenant)
        assert found == pytest.approx(expected, abs=1e-9) and found.max() > 0.01
