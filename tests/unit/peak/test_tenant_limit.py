"""Tests of the evidence for an estimate: windows of a queue, and the trust in the virtual queue."""

import numpy as np
import pytest

from perseus.peak import stats
from perseus.peak.evidence import Evidence
from perseus.peak.lindley import departures_s
from perseus.peak.line_model import LineModel
from perseus.peak.load_line import LoadLine
from perseus.peak.tenant_limit import Draws, tenant_limit
from perseus.peak.virtual_queue import VirtualQueue
from perseus.study.sla import Sla
from perseus.traffic.arrivals import Arrivals

WORK_S, SLA_MS = 0.005, 50.0
ALONE_S = np.random.default_rng(3).exponential(WORK_S, 40)
QUEUE = VirtualQueue((ALONE_S,), (SLA_MS / 1000 - float(np.median(ALONE_S)),))
MODEL = LineModel(LoadLine((0.0,), (1.0,)), (Sla(latency_ms=SLA_MS),), Arrivals(), QUEUE)
RATES_RPS = (125.0, 135.0, 145.0)


def evidence(rate_rps, seed, certifies=False, seconds=8.0, shape=lambda done: done):
    """Return a window of M/M/1 whose response times are changed by `shape`."""
    rng = np.random.default_rng(seed)
    arrival = Arrivals().times_s(rate_rps, seconds, rng)
    done = shape(departures_s(arrival, rng.exponential(WORK_S, len(arrival))))
    latency_ms = np.where(np.isfinite(done), 1000 * (done - arrival), np.inf)
    late, recovered = stats.late_and_recovered(latency_ms, SLA_MS)
    counts = stats.exceedances(latency_ms, SLA_MS)
    return Evidence(rate_rps, certifies, (arrival,), done, 0, len(arrival), late, recovered, counts)


def interval(windows):
    found = tenant_limit(MODEL, 0, windows, Draws.of(400, np.random.default_rng(5)))
    return found.observed, np.quantile(found.scales[1:], [0.025, 0.975])


def lost(done):
    """Remove an early response, so that the service times cannot be derived."""
    return np.where(np.arange(len(done)) == 5, np.nan, done)


def swapped(done):
    """Let each twentieth response overtake the response before it."""
    done = lost(done)
    done[40:-1:20], done[41::20] = done[41::20].copy(), done[40:-1:20].copy()
    return done


def test_answers_that_overtake_each_other_make_the_interval_wider():
    in_turn, out_of_turn = (
        interval([evidence(rate, 10 + i, shape=shape) for i, rate in enumerate(RATES_RPS)])
        for shape in (lost, swapped)
    )
    assert not in_turn[0] and not out_of_turn[0]
    # Both intervals also allow for host drift.
    assert np.ptp(out_of_turn[1]) > 1.15 * np.ptp(in_turn[1])


def test_few_requests_tell_a_limit_where_their_work_is_seen():
    """Three windows of 3 s are enough, since the virtual queue equals the real queue."""
    limit_rps = 1 / WORK_S - np.log(20) / (SLA_MS / 1000)
    for seed in (20, 50, 80):
        windows = [evidence(rate, seed + i, seconds=3.0) for i, rate in enumerate(RATES_RPS)]
        observed, (low, high) = interval(windows)
        assert observed and low < limit_rps < high and high - low < 0.45 * limit_rps


def test_the_lowest_of_two_limits_that_rest_on_the_same_is_either_of_them():
    """Both limits follow from the same windows. With independent draws, the minimum of the two
    limits would be too low."""
    windows = [evidence(rate, 40 + i, shape=lost) for i, rate in enumerate(RATES_RPS)]
    draws = Draws.of(400, np.random.default_rng(5))
    first, second = (tenant_limit(MODEL, 0, windows, draws).scales for _ in range(2))
    assert np.ptp(first[1:]) > 0.1 * first[0]
    lowest = np.median(np.minimum(first, second)[1:])
    assert lowest == pytest.approx(np.median(first[1:]), rel=0.005)


def test_windows_that_certify_count_only_where_the_work_of_requests_is_seen():
    near_limit = [evidence(rate, 20 + i) for i, rate in enumerate(RATES_RPS)]
    observed, by_root = interval(near_limit)
    _, by_all = interval([*near_limit, evidence(115.0, 30, certifies=True, seconds=30)])
    assert observed and np.ptp(by_all) < 0.8 * np.ptp(by_root)

    unseen = [evidence(rate, 20 + i, shape=lost) for i, rate in enumerate(RATES_RPS)]
    certification = evidence(115.0, 30, certifies=True, seconds=30, shape=lost)
    assert np.array_equal(interval([*unseen, certification])[1], interval(unseen)[1])
    # If no window is near the limit, certification windows are the only evidence.
    assert np.isfinite(interval([certification])[1]).all()
