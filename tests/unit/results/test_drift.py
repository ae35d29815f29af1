"""Tests that real drifts are found, and that about one series in twenty gives a false alarm."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import theilslopes

from perseus.peak.stats import Floats
from perseus.results.drift import Trend, correlation_time, drift, random_walk, sen, warm_up

RUNS = 200
LEVEL = 100.0


def hours(n: int) -> Floats:
    """Return the start times of windows of one minute."""
    return np.arange(n) / 60


def noise(
    seed: int, n: int, coefficient: float = 0.0, heavy: bool = False, deviation: float = 1.0
) -> Floats:
    """Return autoregressive values with the mean 0 and the standard deviation `deviation`.

    If `heavy` is true, the variance of the values is infinite.
    """
    rng = np.random.default_rng(seed)
    shocks = rng.standard_t(2, n + 200) if heavy else rng.standard_normal(n + 200)
    values = lfilter([1.0], [1.0, -coefficient], shocks)
    return deviation * np.sqrt(1 - coefficient**2) * values[200:]


def alarms(n: int, **kind: float) -> float:
    """Return the share of series without a drift in which `drift` finds a drift."""
    found = [drift(hours(n), LEVEL + noise(seed, n, **kind)).trend for seed in range(RUNS)]
    return float(np.mean([trend in (Trend.GROWS, Trend.FALLS) for trend in found]))


@pytest.mark.parametrize("n", [12, 60, 240])
@pytest.mark.parametrize(
    "kind", [{}, {"coefficient": 0.5}, {"coefficient": 0.8}, {"heavy": True}], ids=str
)
def test_of_series_without_a_drift_few_have_one(n, kind):
    """If 5 % of all series give a false alarm, 99 % of such tests have at most 18 false alarms in
    200 series (9 %)."""
    assert alarms(n, **kind) <= 0.09


def test_nor_of_those_that_wander_as_slowly_as_the_soak_is_long():
    """Random walks give the most false alarms: 11 % of 300 random walks."""
    assert alarms(60, coefficient=0.95) <= 0.09
    walks = [LEVEL + np.cumsum(noise(seed, 60)) for seed in range(RUNS)]
    found = [drift(hours(60), walk).trend for walk in walks]
    assert np.mean([trend in (Trend.GROWS, Trend.FALLS) for trend in found]) <= 0.16


@pytest.mark.parametrize("kind", [{}, {"coefficient": 0.5}, {"heavy": True}], ids=str)
def test_the_interval_covers_the_slope_and_is_not_too_wide_to_be_of_use(kind):
    slopes = [
        drift(hours(120), LEVEL + 7 * hours(120) + noise(seed, 120, **kind)).per_hour
        for seed in range(RUNS)
    ]
    assert np.mean([each.low <= 7 <= each.high for each in slopes]) >= 0.91
    assert np.median([each.value for each in slopes]) == pytest.approx(7, abs=0.15)
    assert np.median([each.high - each.low for each in slopes]) < 4


@pytest.mark.parametrize(("slope", "trend"), [(15.0, Trend.GROWS), (-15.0, Trend.FALLS)])
def test_a_leak_is_found_in_nearly_every_series(slope, trend):
    found = [
        drift(hours(60), LEVEL + slope * hours(60) + noise(seed, 60, 0.5)).trend
        for seed in range(RUNS)
    ]
    assert np.mean([each == trend for each in found]) >= 0.97


@pytest.mark.parametrize(
    "values",
    [
        LEVEL + 20 * hours(60) ** 2,  # faster and faster
        LEVEL + 20 * np.sqrt(hours(60)),  # slower and slower
        LEVEL + np.floor(12 * hours(60)),  # in steps
        LEVEL + np.arange(60),  # without noise
    ],
    ids=["faster", "slower", "steps", "straight"],
)
def test_what_only_ever_grows_is_said_to_grow(values):
    assert drift(hours(60), values + noise(1, 60, deviation=0.01)).trend == Trend.GROWS
    assert drift(hours(60), values).trend == Trend.GROWS


def test_a_single_step_is_no_drift():
    """For example, the server allocates memory once, half an hour after the start."""
    step = LEVEL + 5.0 * (hours(60) > 0.5) + noise(2, 60, deviation=0.01)
    assert drift(hours(60), step).trend not in (Trend.GROWS, Trend.FALLS)


def test_what_never_changes_is_steady():
    found = drift(hours(60), np.full(60, 42.0))
    assert (found.trend, found.level, found.first) == (Trend.STEADY, 42.0, 0)
    assert (found.per_hour.low, found.per_hour.value, found.per_hour.high) == (0, 0, 0)


def test_a_change_that_is_sure_but_small_is_no_drift_yet():
    """A rise by 0.5 % in an hour counts as steady. A rise by 0.5 % in a minute gives no verdict,
    because a minute is too short."""
    for shorter, trend in ((1, Trend.STEADY), (60, Trend.UNKNOWN)):
        values = LEVEL + 0.5 * hours(60) + noise(5, 60, deviation=0.01)
        found = drift(hours(60) / shorter, values)
        assert found.per_hour.low > 0 and found.trend == trend
    day = hours(60) * 24
    assert drift(day, LEVEL + 0.5 * day + noise(5, 60, deviation=0.01)).trend == Trend.GROWS


def test_what_could_hide_a_drift_is_not_called_steady():
    found = drift(hours(30), LEVEL + noise(3, 30, deviation=30))
    assert found.per_hour.low < 0 < found.per_hour.high and found.trend == Trend.UNKNOWN


@pytest.mark.parametrize(
    ("slope", "trend"), [(0.0, Trend.INFINITE), (-30.0, Trend.INFINITE), (30.0, Trend.GROWS)]
)
def test_what_was_infinite_at_times_is_neither_steady_nor_falls(slope, trend):
    """Infinite values are the highest values.

    A series with infinite values grows if its finite values grow. Otherwise, its trend is INFINITE.
    """
    values = LEVEL + slope * hours(60) + noise(6, 60)
    values[40:44] = np.inf
    found = drift(hours(60), values)
    assert found.trend == trend
    assert found.per_hour.low < slope < found.per_hour.high
    assert found.hours == pytest.approx(hours(60)[-1] - hours(60)[found.first])


def test_a_warm_up_begins_with_what_was_infinite():
    values = LEVEL + noise(6, 60)
    values[:3] = np.inf
    assert drift(hours(60), values).first >= 3


def test_of_what_was_always_infinite_nothing_else_is_said():
    found = drift(hours(30), np.full(30, np.inf))
    assert (found.trend, found.hours) == (Trend.INFINITE, 0) and np.isnan(found.level)


def test_a_change_may_be_a_share_of_another_scale_than_its_level():
    """The level of a quantity may be 0 at the start.

    Relative to a level of 0, every change is infinitely large, so the series would never be steady.
    """
    rare = np.where(hours(60) % 0.25 < 0.1, 0.1, 0.0) + np.abs(noise(8, 60, deviation=0.02))
    assert drift(hours(60), rare).trend == Trend.UNKNOWN
    assert drift(hours(60), rare, scale=5.0).trend == Trend.STEADY
    assert drift(hours(60), rare + 3 * hours(60), scale=5.0).trend == Trend.GROWS


@pytest.mark.parametrize("n", [0, 1, 7])
def test_of_few_values_nothing_is_said(n):
    found = drift(hours(n), np.full(n, 1.0))
    assert found.trend == Trend.UNKNOWN and np.isnan([found.level, found.per_hour.value]).all()


def test_a_warm_up_is_left_out_but_no_drift():
    starting = 40 * np.exp(-hours(60) * 20)  # minutes
    for slope, trend in ((0.0, Trend.STEADY), (12.0, Trend.GROWS)):
        values = LEVEL + slope * hours(60) - starting + noise(4, 60, deviation=0.3)
        found = drift(hours(60), values)
        assert 5 <= found.first <= 30 and found.trend == trend
        assert found.per_hour.value == pytest.approx(slope, abs=1.5)
        at_first = LEVEL + slope * hours(60)[found.first]
        assert found.level == pytest.approx(at_first, abs=0.5)
    assert warm_up(hours(60), LEVEL + 12 * hours(60) + noise(5, 60, deviation=0.01)) <= 10


def test_independent_values_have_the_interval_of_sen():
    """scipy has the same interval, with the normal instead of Student's distribution."""
    values = noise(9, 30)
    found, theirs = sen(hours(30), values), theilslopes(values, hours(30))
    assert correlation_time(values - theirs.slope * hours(30)) == 1.0
    assert found is not None and found.value == theirs.slope
    assert found.low == pytest.approx(theirs.low_slope, abs=0.15 * (found.high - found.low))
    assert found.low <= theirs.low_slope and found.high >= theirs.high_slope


def test_values_that_go_together_are_worth_fewer():
    times = [np.median([correlation_time(noise(seed, 200, c)) for seed in range(50)])
             for c in (0.0, 0.5, 0.8)]  # fmt: skip
    assert times == pytest.approx([1.0, 3.0, 9.0], rel=0.2)


def test_of_a_random_walk_the_increments_tell():
    walk = np.cumsum(np.r_[0, 2 + noise(7, 99)])
    found = random_walk(hours(100), walk)
    assert found.value == pytest.approx((walk[-1] - walk[0]) / hours(100)[-1])
    assert found.low < 120 < found.high
