"""Tests that intervals from few repeats contain the truth for any difference between repeats."""

import numpy as np
import pytest

from benchmarks.repeats import covered, intervals, peak_draws, ratio_draws
from perseus.peak.between_repeats import (
    deviation_draws,
    deviation_draws_of_each,
    limit_draws,
    shared_deviation_draws,
)

STUDIES = 300
BINOMIAL = 2.6 * np.sqrt(0.95 * 0.05 / STUDIES)
"""If the true coverage is 95 %, only one simulation in 200 finds a coverage lower by more than
BINOMIAL."""


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
    """If two repeats agree, the interval extends 10 to 30 % to either side, like the t interval."""
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


def repeated(rng, deviation, lines, repeats=3):
    """Return load lines of a host whose repeats differ by `deviation`.

    A load line is a pair: the mean of each repeat, and the variance of each mean, which is small.
    """
    sure = np.full(repeats, 1e-6)
    return [(rng.normal(0, deviation, repeats), sure) for _ in range(lines)]


def test_a_noisy_host_tells_of_itself_beside_quiet_ones():
    rng = np.random.default_rng(0)
    truths = {"quiet": 0.01, "calm": 0.01, "still": 0.01, "noisy": 0.08}
    groups = {name: repeated(rng, each, lines=8) for name, each in truths.items()}
    for name, draws in deviation_draws_of_each(groups, rng, 4000).items():
        low, high = np.quantile(draws, [0.025, 0.975])
        assert low < truths[name] < high and high < 2 * truths[name]


def test_alike_hosts_with_few_repeats_tell_of_each_other():
    rng = np.random.default_rng(1)
    groups = {f"host {i}": repeated(rng, 0.05, lines=2) for i in range(6)}
    together = deviation_draws_of_each(groups, rng, 4000)

    def spread(draws):
        return np.log(draws).std()

    alone = np.mean([spread(shared_deviation_draws(own, rng, 4000)) for own in groups.values()])
    assert np.mean([spread(draws) for draws in together.values()]) < 0.85 * alone


def test_a_host_without_repeats_is_like_the_others_but_less_sure():
    rng = np.random.default_rng(2)
    groups = {f"host {i}": repeated(rng, 0.03, lines=5) for i in range(4)}
    found = deviation_draws_of_each({**groups, "unknown": []}, rng, 4000)
    assert np.median(found["unknown"]) == pytest.approx(0.03, rel=0.4)
    assert np.log(found["unknown"]).std() > np.log(found["host 0"]).std()


def test_one_host_is_all_that_was_repeated():
    groups = repeated(np.random.default_rng(3), 0.05, lines=4)
    draws = [np.random.default_rng(4) for _ in range(2)]
    alone = deviation_draws_of_each({"host": groups}, draws[0], 1000)["host"]
    assert (alone == shared_deviation_draws(groups, draws[1], 1000)).all()
