"""Tests of statistics against a known truth: each interval must have its nominal coverage."""

from __future__ import annotations

import numpy as np
import pytest

from perseus.peak import stats


def test_percentiles_are_observed_values_and_lost_requests_count():
    assert stats.percentile([5, 1, 4, 2, 3], 50) == 3
    assert stats.percentile(range(1, 101), 95) == 95
    assert stats.percentile([1.0] * 90 + [np.inf] * 10, 95) == np.inf
    assert np.isnan(stats.percentile([], 95))


def queue_ms(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return latencies of M/M/1 at 80 % utilisation and 1 ms service time (Lindley's recursion)."""
    gaps, work, waits = rng.exponential(1.25, n), rng.exponential(1, n), np.zeros(n)
    for i in range(1, n):
        waits[i] = max(0.0, waits[i - 1] + work[i - 1] - gaps[i])
    return waits + work


def test_the_interval_of_a_percentile_covers_that_of_a_queue():
    rng, truth_ms, covered, plain = np.random.default_rng(4), -np.log(0.05) / 0.2, 0, 0
    for _ in range(150):
        latency_ms = queue_ms(rng, 4000)[500:]
        found = stats.percentile_interval(latency_ms, 95)
        covered += found.low <= truth_ms <= found.high
        # if the requests were independent
        ranks = [stats.percentile(latency_ms, each) for each in (94.3, 95.7)]
        plain += ranks[0] <= truth_ms <= ranks[1]
        assert found.low < found.value < found.high
    assert covered / 150 >= 0.9
    assert plain / 150 < 0.5
    assert stats.percentile_interval(np.arange(30.0), 99).high == np.inf


LIMIT_MS = 100.0


def clustered(rng: np.random.Generator, n: int, share: float, run: int) -> np.ndarray:
    """Return latencies whose late requests come in runs of `run`, as in a queue."""
    return np.where(np.repeat(rng.random(n // run) < share, run), 200.0, 10.0)


def test_an_exceedance_interval_covers_although_neighbours_share_their_fate():
    rng, hits, naive = np.random.default_rng(1), 0, 0
    for _ in range(300):
        latency_ms = clustered(rng, 2000, 0.1, 20)
        seen = stats.exceedances(latency_ms, LIMIT_MS)
        found = stats.exceedance(latency_ms, LIMIT_MS, 0.9, stats.dispersion([seen], [1.0]))
        hits += found.low <= 0.1 <= found.high
        half = 1.645 * np.sqrt(0.1 * 0.9 / len(latency_ms))
        naive += abs(np.mean(latency_ms > LIMIT_MS) - 0.1) <= half
    assert hits / 300 >= 0.9
    assert naive / 300 < 0.5  # coverage of a binomial interval


def test_no_exceedance_in_few_requests_proves_little():
    none = np.full(60, 10.0)
    assert stats.exceedance(none, LIMIT_MS, 0.9, 1).high == pytest.approx(1 - 0.05 ** (1 / 60))
    assert stats.exceedance(none, LIMIT_MS, 0.9, 4).high > 0.15
    assert stats.exceedance(none[:0], LIMIT_MS, 0.9, 1).high == 1


def test_a_percentile_needs_as_many_requests_as_the_literature_says():
    assert [stats.fewest_requests(allowed) for allowed in (0.05, 0.01)] == [130, 662]


@pytest.mark.parametrize("run", [1, 8])
def test_the_dispersion_is_the_size_of_clusters(run):
    rng = np.random.default_rng(6)
    seen = [stats.exceedances(clustered(rng, 4000, 0.05, run), LIMIT_MS) for _ in range(10)]
    assert stats.dispersion(seen, np.ones(10)) == pytest.approx(run, rel=0.25)


def test_an_unseen_cluster_is_expected_as_long_as_latencies_are_correlated():
    rng = np.random.default_rng(7)
    # No request is late. In each group of 20 requests, all latencies are equal.
    calm = np.repeat(rng.uniform(5, 40, 200), 20)
    seen = stats.exceedances(calm, LIMIT_MS)
    assert seen.late == 0 and 12 < seen.correlation < 30
    assert stats.dispersion([seen], [1.0]) > 10


def test_a_host_that_wanders_far_below_the_limit_says_nothing_of_episodes():
    wandering = 50 + np.cumsum(np.random.default_rng(1).normal(0, 0.2, 160))
    seen = stats.exceedances(wandering, 1000)
    assert (seen.late, seen.correlation) == (0, 1)
    assert stats.exceedance(wandering, 1000, 0.9, stats.dispersion([seen], [1])).high <= 0.05
    near = stats.exceedances(wandering, 60)
    assert near.correlation > 5


@pytest.mark.parametrize("limit_ms", [33.3, 200.0, 200.1, 1580.92])
def test_latencies_far_below_any_limit_pass(limit_ms):
    """The limits include numbers without an exact binary representation."""
    quiet = np.random.default_rng(1).uniform(0.01, 0.2, 151) * limit_ms
    seen = stats.exceedances(quiet, limit_ms)
    assert seen.correlation == 1
    assert stats.exceedance(quiet, limit_ms, 0.9, stats.dispersion([seen], [1])).high <= 0.05


def test_the_correlation_time_of_an_autoregressive_series_is_that_of_theory():
    rng, a = np.random.default_rng(8), 0.9
    values, noise = np.zeros(100_000), rng.normal(size=100_000)
    for i in range(1, len(values)):
        values[i] = a * values[i - 1] + noise[i]
    assert stats.correlation_time(values) == pytest.approx((1 + a) / (1 - a), rel=0.15)


def test_a_trend_is_seen_and_noise_is_not():
    rng = np.random.default_rng(3)
    t = np.arange(20.0)
    assert stats.rising(t, t + rng.normal(0, 3, 20), 0.99)[1]
    false_alarms = sum(stats.rising(t, rng.normal(0, 3, 20), 0.99)[1] for _ in range(200))
    assert false_alarms <= 6
