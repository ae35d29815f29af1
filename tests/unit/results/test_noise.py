"""Tests of the noise floor: 5 % of the pairs of equal cells differ by more."""

import numpy as np
import pytest

from perseus.results.noise import deviation, noise

WITHIN, BETWEEN, WINDOWS = 0.02, 0.03, 4


def cells(rng, *shape):
    """Return throughputs of servers, shape (..., windows), around 100 requests/s."""
    server = rng.normal(0, BETWEEN, shape)[..., None]
    return 100 * np.exp(server + rng.normal(0, WITHIN, (*shape, WINDOWS)))


@pytest.mark.parametrize("servers", [2, 5, 20])
def test_one_pair_of_twenty_differs_by_more_than_the_floor(servers):
    rng, beyond = np.random.default_rng(servers), []
    for _ in range(4000):
        floor = noise(cells(rng, servers)).floor
        one, other = cells(rng, 2).mean(axis=-1)
        beyond.append(abs(one - other) / 100 > floor)
    assert np.mean(beyond) == pytest.approx(0.05, abs=0.011)


def test_deviations_are_told_apart_and_their_intervals_cover_them():
    rng = np.random.default_rng(1)
    found = [noise(cells(rng, 6)) for _ in range(1000)]
    means = np.hypot(BETWEEN, WITHIN / np.sqrt(WINDOWS))
    for name, truth in (("between_windows", WITHIN), ("between_restarts", means)):
        each = [getattr(one, name) for one in found]
        assert np.sqrt(np.mean([one.value**2 for one in each])) == pytest.approx(truth, rel=0.05)
        covered = np.mean([one.low < truth < one.high for one in each])
        assert covered == pytest.approx(0.95, abs=0.03)
    assert np.mean([one.capacity_rps for one in found]) == pytest.approx(100, rel=0.01)


def test_the_interval_of_a_deviation_is_that_of_tables():
    """For ten values, the interval is 0.688 to 1.826 times the standard deviation."""
    ends = deviation(1.0, 9)
    assert (round(ends.low, 3), round(ends.high, 3)) == (0.688, 1.826)
