"""Arrivals are what they say: absolute, independent, at the asked rate, and reproducible."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from perseus.arrivals import Arrivals, stream


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("process", ["poisson", "constant", "gamma"])
def test_times_ascend_within_the_window_at_the_asked_rate(process):
    times = Arrivals(process, cv=2.0).times_s(200, 50, rng())
    assert np.all(np.diff(times) >= 0) and times[0] >= 0 and times[-1] < 50
    assert len(times) == pytest.approx(200 * 50, rel=0.08)


def test_poisson_gaps_are_exponential_and_independent():
    times = Arrivals().times_s(100, 200, rng())
    gaps = np.diff(times)
    assert scipy_stats.kstest(gaps, "expon", args=(0, 0.01)).pvalue > 0.01
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 0.03
    counts = np.bincount(times.astype(int))
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.35)  # index of dispersion


def test_a_gamma_process_has_the_asked_variation():
    gaps = np.diff(Arrivals("gamma", cv=3.0).times_s(100, 1000, rng()))
    assert gaps.std() / gaps.mean() == pytest.approx(3, rel=0.1)


def test_constant_arrivals_are_paced_from_a_random_phase():
    first, second = (Arrivals("constant").times_s(10, 5, rng(seed)) for seed in (1, 2))
    assert np.allclose(np.diff(first), 0.1)
    assert first[0] != second[0]


def test_a_stream_is_reproducible_and_differs_between_tenants_and_repeats():
    def draw(seed: int, repeat: int, tenant: int) -> float:
        return float(stream(seed, repeat, tenant).random())

    assert draw(1, 1, 0) == draw(1, 1, 0)
    assert len({draw(1, 1, 0), draw(1, 1, 1), draw(1, 2, 0), draw(2, 1, 0)}) == 4


def test_no_rate_means_no_requests_and_nonsense_is_refused():
    assert len(Arrivals().times_s(0, 10, rng())) == 0
    for rate, duration in ((-1, 1), (float("nan"), 1), (1, -1), (float("inf"), 1)):
        with pytest.raises(ValueError, match="must be finite and >= 0"):
            Arrivals().times_s(rate, duration, rng())
