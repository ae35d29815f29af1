"""Tests that Perseus distinguishes a steady latency with noise from a transient and from drift."""

from __future__ import annotations

import numpy as np

from perseus.peak.steadiness import IDLE, TOLERANCE, steadiness, transient


def latencies(seed: int, n: int = 400) -> np.ndarray:
    return np.random.default_rng(seed).gamma(4, 5, n)


def test_a_transient_is_cut_off_and_nothing_else():
    slow_start = latencies(1)
    slow_start[:60] += 100
    assert 50 <= transient(slow_start) <= 90
    assert steadiness(slow_start).steady


def test_noise_is_steady():
    assert np.mean([steadiness(latencies(seed)).steady for seed in range(200)]) >= 0.96


def test_what_keeps_changing_is_not_steady():
    drifting = latencies(2) * np.linspace(1, 2, 400)
    found = steadiness(drifting)
    assert not found.steady and found.last.value_ms > 1.2 * found.first.value_ms


def test_a_level_differs_by_more_than_the_tolerance_and_more_than_chance():
    calm, slower = steadiness(latencies(3, 8000)).last, steadiness(1.3 * latencies(4, 8000)).last
    assert calm.differs(slower, TOLERANCE) and not calm.differs(slower, 0.5)
    few = steadiness(latencies(3, 48)).last
    assert not few.differs(slower, TOLERANCE)


def test_a_warm_up_goes_on_only_between_windows_with_enough_responses():
    slower = steadiness(latencies(5) * np.linspace(1, 2, 400))
    much_slower = steadiness(latencies(6) * np.linspace(2, 4, 400))
    assert much_slower.still_changes_since(slower, 1.5)
    assert not IDLE.still_changes_since(slower, 1.5)
    assert not slower.still_changes_since(IDLE, 1.5)
