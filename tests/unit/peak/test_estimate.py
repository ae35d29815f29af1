"""What an estimate rests on: windows of a queue, and how far the virtual one is trusted."""

import numpy as np
import pytest

from benchmarks.simulation import one_worker
from perseus.peak import stats
from perseus.peak.estimate import Evidence, limit
from perseus.peak.virtual_queue import LongRun, VirtualQueue
from perseus.traffic.arrivals import Arrivals

WORK_S, SLA_MS, ALLOWED = 0.005, 50.0, 0.05
ALONE_S = np.random.default_rng(3).exponential(WORK_S, 40)
QUEUE = VirtualQueue((ALONE_S,), (SLA_MS / 1000 - float(np.median(ALONE_S)),))
ROOT = (125.0, 135.0, 145.0)


def evidence(rate_rps, seed, confirms=False, seconds=8.0, shape=lambda done: done):
    """A window of M/M/1, its answers changed by `shape`."""
    rng = np.random.default_rng(seed)
    arrival = Arrivals().times_s(rate_rps, seconds, rng)
    done = shape(one_worker(arrival, rng.exponential(WORK_S, len(arrival))))
    latency_ms = np.where(np.isfinite(done), 1000 * (done - arrival), np.inf)
    late, recovered = stats.late_and_recovered(latency_ms, SLA_MS)
    counts = stats.exceedances(latency_ms, SLA_MS)
    return Evidence(rate_rps, confirms, (arrival,), done, 0, len(arrival), late, recovered, counts)


def interval(windows):
    found = limit(
        windows,
        0,
        lambda scale: [scale],
        QUEUE,
        ALLOWED,
        Arrivals(),
        np.random.default_rng(5),
        draws=400,
    )
    return found.observed, np.quantile(found.scales[1:], [0.025, 0.975])


def lost(done):
    """One answer of the first is missing: work cannot be read off."""
    return np.where(np.arange(len(done)) == 5, np.nan, done)


def swapped(done):
    """Each twentieth answer comes before the one that it should follow."""
    done = lost(done)
    done[40:-1:20], done[41::20] = done[41::20].copy(), done[40:-1:20].copy()
    return done


def test_answers_that_overtake_each_other_make_the_interval_wider():
    in_turn, out_of_turn = (
        interval([evidence(rate, 10 + i, shape=shape) for i, rate in enumerate(ROOT)])
        for shape in (lost, swapped)
    )
    assert not in_turn[0] and not out_of_turn[0]
    assert np.ptp(out_of_turn[1]) > 1.3 * np.ptp(in_turn[1])


def test_windows_that_certify_count_only_where_the_work_of_requests_is_seen():
    root = [evidence(rate, 20 + i) for i, rate in enumerate(ROOT)]
    observed, by_root = interval(root)
    _, by_all = interval([*root, evidence(115.0, 30, confirms=True, seconds=30)])
    assert observed and np.ptp(by_all) < 0.8 * np.ptp(by_root)

    unseen = [evidence(rate, 20 + i, shape=lost) for i, rate in enumerate(ROOT)]
    confirm = evidence(115.0, 30, confirms=True, seconds=30, shape=lost)
    assert np.array_equal(interval([*unseen, confirm])[1], interval(unseen)[1])
    # Where there are no others they are all there is.
    assert np.isfinite(interval([confirm])[1]).all()


@pytest.mark.parametrize("process", ["poisson", "gamma", "constant", "trace"])
@pytest.mark.parametrize("rates_rps", [(130.0,), (90.0, 30.0), (0.0, 120.0)])
def test_a_long_run_stands_for_every_rate(process, rates_rps):
    """One drawn at a request per second, and one drawn at the rate itself."""
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
    waits[order] = one_worker(arrival[order], work[order]) - arrival[order] - work[order]
    for tenant, expected in enumerate(np.split(waits, [len(arrivals_s[0])])):
        (found,) = queue.spent_s(drawn, tenant)
        assert found == pytest.approx(expected, abs=1e-9) and found.max() > 0.01


def test_work_is_drawn_in_runs_of_neighbours():
    work_s = np.arange(1000.0)
    for run, share in ((200, 0.995), (1, 0.0)):
        queue = VirtualQueue((work_s,), (1.0,), run=run)
        (drawn,) = queue.draw([np.arange(5000.0)], draws=1).work_s
        together = np.mean(np.diff(drawn) % 1000 == 1)
        assert together == pytest.approx(share, abs=0.01)
        assert set(drawn) <= set(work_s) and len(set(drawn)) > 900
