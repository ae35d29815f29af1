"""Tests of closed loops: knees from exact mean-value analysis, and choice of a scalability law."""

from __future__ import annotations

import numpy as np
import pytest

from perseus.results.scalability import (
    QUEUEING,
    UNIVERSAL,
    Fit,
    fitted,
    queueing,
    throughput_rps,
    universal,
)

DEMAND_S, DELAY_S = 0.010, 0.050  # at most 100 requests/s; with one request in flight, 16.7/s
KNEE = (DEMAND_S + DELAY_S) / DEMAND_S
LEVELS = (1, 2, 4, 8, 16, 32, 64)


def mean_value_analysis(levels, demand_s: float, delay_s: float) -> list[float]:
    """Return the exact throughput of a closed network of one queueing station and a delay.

    Lazowska et al., chapter 6: an arriving request sees the queue of the network with one request
    less.
    """
    queue, found = 0.0, {}
    for n in range(1, max(levels) + 1):
        residence_s = demand_s * (1 + queue)
        found[n] = n / (delay_s + residence_s)
        queue = found[n] * residence_s
    return [found[n] for n in levels]


def noisy(rates, seed: int, deviation: float) -> list[float]:
    rng = np.random.default_rng(seed)
    return (np.array(rates) * np.exp(rng.normal(0, deviation, len(rates)))).tolist()


def fit(levels, rates) -> Fit:
    found = fitted(levels, rates)
    assert found is not None
    return found


@pytest.mark.parametrize("delay_s", [0.0, 0.002, 0.05, 1.0])
def test_the_queueing_law_is_that_of_mean_value_analysis(delay_s):
    knee = np.array([(DEMAND_S + delay_s) / DEMAND_S])
    (relative,) = queueing(LEVELS, knee, np.zeros(1))
    rates = mean_value_analysis(LEVELS, DEMAND_S, delay_s)
    np.testing.assert_allclose(relative, np.array(rates) / rates[0], rtol=1e-9)


def test_without_coherency_the_universal_law_has_the_asymptotes_of_operational_analysis():
    (relative,) = universal([1, 10**6], np.array([KNEE]), np.zeros(1))
    assert relative == pytest.approx([1.0, KNEE], rel=1e-4)


@pytest.mark.parametrize("levels", [(1, 4, 16), (1, 2, 4, 8, 16), LEVELS])
def test_the_knee_of_a_closed_queue_is_found(levels):
    found = fit(levels, mean_value_analysis(levels, DEMAND_S, DELAY_S))
    assert found.law == QUEUEING and found.error < 0.005
    assert found.knee.value == pytest.approx(KNEE, rel=0.02)
    assert found.single_rps.value == pytest.approx(1 / (DEMAND_S + DELAY_S), rel=0.02)
    assert found.saturated_rps.value == pytest.approx(1 / DEMAND_S, rel=0.02)
    assert found.knee_rps == pytest.approx(
        mean_value_analysis([round(KNEE)], DEMAND_S, DELAY_S)[0], rel=0.02
    )


@pytest.mark.parametrize(("levels", "width"), [((1, 4, 16), 8.0), (LEVELS, 0.35)])
def test_the_intervals_cover_the_truth(levels, width):
    truth = mean_value_analysis(levels, DEMAND_S, DELAY_S)
    fits = [fit(levels, noisy(truth, seed, 0.03)) for seed in range(200)]
    known = {"knee": KNEE, "single_rps": 1 / (DEMAND_S + DELAY_S), "saturated_rps": 1 / DEMAND_S}
    mine = [each for each in fits if each.law == QUEUEING]
    assert len(mine) >= 0.9 * len(fits)
    for name, value in known.items():
        ends = [getattr(each, name) for each in mine]
        covered = np.mean([each.low <= value <= each.high for each in ends])
        assert 0.91 <= covered <= 0.99, name
    widths = [(each.knee.high - each.knee.low) / KNEE for each in mine]
    assert np.median(widths) < width


def test_a_server_that_gets_slower_with_more_in_flight_has_the_universal_law():
    single_rps, sigma, kappa = 20.0, 0.1, 0.002
    truth = throughput_rps(UNIVERSAL, LEVELS, single_rps, 1 / sigma, kappa)
    fits = [fit(LEVELS, noisy(truth, seed, 0.01)) for seed in range(100)]
    assert {each.law for each in fits} == {UNIVERSAL}
    known = {"knee": 1 / sigma, "kappa": kappa, "highest": np.sqrt((1 - sigma) / kappa)}
    for name, value in known.items():
        ends = [getattr(each, name) for each in fits]
        assert np.median([each.value for each in ends]) == pytest.approx(value, rel=0.1)
        assert np.mean([each.low <= value <= each.high for each in ends]) >= 0.9


def test_of_two_laws_that_suit_alike_the_simpler_is_named():
    """One request in flight keeps the server busy, so both laws predict a constant throughput."""
    laws = [fit(LEVELS, noisy([100.0] * len(LEVELS), seed, 0.03)).law for seed in range(50)]
    assert laws.count(QUEUEING) >= 45


def test_a_throughput_that_only_rises_has_no_knee():
    found = fit([1, 2, 4], [10.0, 20.0, 40.0])
    assert (found.knee.value, found.knee.high) == (np.inf, np.inf)
    assert np.isnan(found.knee_rps) and found.saturated_rps.value == np.inf
    assert found.single_rps.value == pytest.approx(10, rel=0.05)


def test_a_throughput_that_never_rises_has_its_knee_at_one():
    found = fit([1, 2, 4], [10.0, 10.0, 10.0])
    assert found.knee.value == 1 and found.saturated_rps.value == pytest.approx(10)


def test_a_knee_above_all_levels_has_an_open_interval():
    levels = (1, 2, 4)
    found = fit(levels, noisy(mean_value_analysis(levels, DEMAND_S, 0.5), 1, 0.02))
    assert found.knee.value > 8 and found.knee.high == np.inf


def test_two_levels_are_too_few():
    assert fitted([1, 4], [10.0, 20.0]) is None


def test_fewer_than_six_levels_are_not_given_to_the_law_of_three_parameters():
    truth = throughput_rps(UNIVERSAL, LEVELS[:5], 20.0, 10.0, 0.002)
    assert fit(LEVELS[:5], truth.tolist()).law == QUEUEING
