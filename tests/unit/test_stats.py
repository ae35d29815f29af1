"""Statistics against known truth: their intervals must cover what they claim to cover."""

from __future__ import annotations

import numpy as np
import pytest

from perseus import stats


def test_percentiles_are_observed_values_and_lost_requests_count():
    assert stats.percentile([5, 1, 4, 2, 3], 50) == 3
    assert stats.percentile(range(1, 101), 95) == 95
    assert stats.percentile([1.0] * 90 + [np.inf] * 10, 95) == np.inf
    assert np.isnan(stats.percentile([], 95))


def clustered(rng: np.random.Generator, n: int, share: float, run: int) -> np.ndarray:
    """Requests over their SLA come in runs of `run`, as in a queue: correlated like real ones."""
    return np.repeat(rng.random(n // run) < share, run)


def test_an_exceedance_interval_covers_although_neighbours_share_their_fate():
    rng, hits, naive = np.random.default_rng(1), 0, 0
    for _ in range(300):
        sample = clustered(rng, 2000, 0.1, 20)
        found = stats.exceedance(sample, 0.9)
        hits += found.low <= 0.1 <= found.high
        half = 1.645 * np.sqrt(0.1 * 0.9 / len(sample))
        naive += abs(sample.mean() - 0.1) <= half
    assert hits / 300 >= 0.86
    assert naive / 300 < 0.5  # what a binomial interval would have claimed


def test_no_exceedance_in_few_requests_proves_little():
    none = np.zeros(60, bool)
    assert stats.exceedance(none, 0.9).high == pytest.approx(1 - 0.05 ** (1 / 60))
    assert stats.exceedance(none, 0.9, dispersion=4).high > 0.15
    assert stats.exceedance(np.empty(0, bool), 0.9).high == 1


def test_the_effective_size_of_repeated_values_is_that_of_the_originals():
    rng = np.random.default_rng(2)
    independent = np.mean([stats.effective_size(rng.random(1000)) for _ in range(20)])
    repeated = np.mean([stats.effective_size(np.repeat(rng.random(100), 10)) for _ in range(20)])
    assert independent > 600
    assert repeated < 0.3 * independent


def test_a_trend_is_seen_and_noise_is_not():
    rng = np.random.default_rng(3)
    t = np.arange(20.0)
    assert stats.rising(t, t + rng.normal(0, 3, 20), 0.99)[1]
    false_alarms = sum(stats.rising(t, rng.normal(0, 3, 20), 0.99)[1] for _ in range(200))
    assert false_alarms <= 6


def windows(rng: np.random.Generator, loads: np.ndarray, limit: float, n: int, run: int) -> list:
    """Batch counts of windows whose exceedance is 5 % at `limit`, with a slope of 15."""
    shares = 1 / (1 + np.exp(-(np.log(0.05 / 0.95) + 15 * np.log(loads / limit))))
    return [stats.batch_counts(clustered(rng, n, share, run), 4) for share in shares]


@pytest.mark.parametrize("run", [1, 5])
def test_the_limit_is_found_and_its_bootstrap_covers(run):
    rng, loads = np.random.default_rng(4), np.array([80, 90, 95, 100, 105, 110.0])
    estimates, covered = [], 0
    for _ in range(200):
        found = stats.limit(loads, windows(rng, loads, 100, 600, run), 0.05, rng, 200)
        low, high = np.percentile(found[1:], [2.5, 97.5])
        estimates.append(found[0])
        covered += low <= 100 <= high
    assert np.mean(estimates) == pytest.approx(100, rel=0.015)
    assert covered / 200 >= 0.9


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_windows_that_all_pass_or_all_fail_give_a_finite_limit_beyond_them(share):
    counts = [np.array([[round(50 * share), 50]] * 4)] * 3
    found = stats.limit(np.array([90, 100, 110.0]), counts, 0.05, np.random.default_rng(5), 50)
    assert np.all(np.isfinite(found))
    assert found[0] > 105 if share == 0 else found[0] < 95


def test_dispersion_tells_clusters_from_independent_requests():
    rng = np.random.default_rng(6)
    loads = np.full(40, 100.0)
    assert stats.dispersion(windows(rng, loads, 100, 800, 1)) < 1.6
    assert 3 < stats.dispersion(windows(rng, loads, 100, 800, 8)) < 14
