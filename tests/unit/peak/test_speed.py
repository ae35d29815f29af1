"""Tests of the speed of a busy server, with little random error and robust to bursts."""

from __future__ import annotations

import numpy as np
import pytest

from perseus.peak.speed import IN_FLIGHT, Speed, change, duration_s, mean_rps, speed, wander
from perseus.traffic.requests import Requests, Status

SECOND = 10**9


def answered(gaps_s: np.ndarray) -> Requests:
    """Return the requests of a closed loop whose responses have these gaps."""
    done_ns = np.round(np.cumsum(gaps_s) * 1e9).astype(np.int64)
    sent_ns = np.append(0, done_ns[:-1])
    status = np.full(len(done_ns), Status.OK, np.uint8)
    return Requests(intended_ns=sent_ns, sent_ns=sent_ns, done_ns=done_ns, status=status)


def test_the_speed_is_the_rate_of_answers_and_leaves_out_the_beginning():
    gaps_s = np.append(np.full(20, 0.05), np.full(200, 0.005))  # the server is slow for one second
    assert speed(answered(gaps_s), SECOND).rate_rps == pytest.approx(200)
    assert speed(answered(gaps_s), 0).log_error > speed(answered(gaps_s), SECOND).log_error


def test_a_burst_of_something_else_hardly_counts():
    gaps_s = np.full(300, 0.005)
    gaps_s[100:140] *= 4
    assert speed(answered(gaps_s), 0).rate_rps == pytest.approx(200, rel=0.01)


def test_its_error_is_what_it_says():
    """The service time is exponential, so the mean of 300 requests has an error of 6 %."""
    found = [
        speed(answered(np.random.default_rng(seed).exponential(0.005, 300)), 0)
        for seed in range(200)
    ]
    scatter = np.std(np.log([each.rate_rps for each in found]))
    assert np.mean([each.log_error for each in found]) == pytest.approx(scatter, rel=0.25)


def test_without_answers_there_is_no_speed():
    assert np.isnan(speed(answered(np.array([])), 0).rate_rps)
    assert np.isnan(speed(answered(np.array([0.1])), 0).rate_rps)


@pytest.mark.parametrize("groups", [2, 3, 10])
def test_answers_in_groups_do_not_raise_the_mean_throughput(groups):
    """In the order of arrival, the server serves four requests of a tenant (20 ms), and then four
    of another tenant (80 ms). In 100 ms, the tenant gets four responses."""
    gaps_s = np.tile([0.085, 0.005, 0.005, 0.005], groups)
    assert mean_rps(speed(answered(gaps_s), 0)) == pytest.approx(IN_FLIGHT / 0.1)


def test_few_answers_have_a_mean_throughput():
    assert mean_rps(speed(answered(np.full(3, 0.01)), 0)) == pytest.approx(100)
    assert np.isnan(mean_rps(speed(answered(np.array([0.1])), 0)))


def test_slow_models_are_looked_at_for_longer():
    assert duration_s(np.array([2.0])) == 1.5
    assert duration_s(np.array([200.0])) == 6
    assert duration_s(np.array([5000.0])) == 20


def test_a_change_is_a_factor_of_the_tenant_that_changed_most():
    before, idle = Speed(200, 0.01), Speed(np.nan, np.nan)
    assert change([before, idle], [Speed(100, 0.01), idle]) == 2
    assert change([before, before], [Speed(220, 0.01), Speed(300, 0.01)]) == 1.5
    assert change([idle], [idle]) == 1


def test_what_the_luck_of_few_answers_explains_is_no_change():
    assert change([Speed(0.4, 0.4)], [Speed(0.8, 0.3)]) == 1
    assert change([Speed(0.4, 0.05)], [Speed(0.8, 0.05)]) == 2


@pytest.mark.parametrize(("error", "true"), [(0.0, 0.0), (0.06, 0.0), (0.0, 0.08), (0.06, 0.08)])
def test_what_wanders_is_the_server_and_not_its_measurement(error, true):
    rng = np.random.default_rng(3)
    seen = [[Speed(float(np.exp(rng.normal(5, np.hypot(true, error)))), error)] for _ in range(400)]
    assert wander(seen) == pytest.approx(true, abs=0.02)


def test_nothing_is_known_of_one_look():
    assert wander([[Speed(200, 0.01)]]) == 0
    assert wander([]) == 0
