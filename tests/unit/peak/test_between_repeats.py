"""Intervals from few repeats hold the truth, whatever lies between the repeats."""

import numpy as np
import pytest

from benchmarks.repeats import covered, intervals, peak_draws, ratio_draws
from perseus.peak.between_repeats import deviation_draws, limit_draws

STUDIES = 300
BINOMIAL = 2.6 * np.sqrt(0.95 * 0.05 / STUDIES)
"""Of a true coverage of 95 %, one in two hundred such simulations falls short by more."""


@pytest.mark.parametrize("within", [0.02, 0.08])
@pytest.mark.parametrize("variance_ratio", [0, 1, 5])
@pytest.mark.parametrize("repeats", [2, 3, 4, 5])
def test_the_interval_of_a_peak_holds_the_truth(repeats, variance_ratio, within):
    between = np.sqrt(variance_ratio) * within
    found = covered(intervals(peak_draws, repeats, between, within, STUDIES))
    assert found >= 0.95 - BINOMIAL


@pytest.mark.parametrize("between", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_the_interval_of_a_ratio_holds_the_truth_where_hosts_wander(repeats, between):
    found = covered(intervals(ratio_draws, repeats, between, 0.02, STUDIES))
    assert found >= 0.95 - BINOMIAL


def test_two_repeats_that_agree_do_not_give_an_absurd_interval():
    """The t interval of two is as wide, and ten times that where hosts differ by 10 %."""
    low, high = intervals(peak_draws, 2, 0.0, 0.02, 1)[0]
    assert 0.1 < np.log(high / low) / 2 < 0.3


def test_more_repeats_that_agree_make_it_narrow():
    low, high = intervals(peak_draws, 10, 0.0, 0.02, 1)[0]
    assert np.log(high / low) / 2 < 0.025


def test_a_single_repeat_has_its_own_posterior():
    posterior = np.array([0.9, 1.0, 1.2])
    draws = limit_draws([posterior], np.random.default_rng(1), 1000)
    assert set(draws[:, 0]) == set(posterior)


def test_the_deviation_between_many_repeats_is_found():
    rng = np.random.default_rng(1)
    means = rng.normal(0, 0.1, 200)
    deviations = deviation_draws(means, np.full(200, 1e-4), rng, 1000)
    assert np.median(deviations) == pytest.approx(0.1, rel=0.15)


def test_repeats_that_know_nothing_of_themselves_leave_the_prior():
    rng = np.random.default_rng(1)
    draws = deviation_draws(np.array([0.0, 0.1]), np.full(2, 1e4), rng, 4000)
    assert np.sqrt(np.mean(draws**2)) == pytest.approx(0.25, rel=0.05)


def test_repeats_without_any_scatter_are_no_division_by_zero():
    rng = np.random.default_rng(1)
    assert np.isfinite(deviation_draws(np.zeros(3), np.zeros(3), rng, 10)).all()
