"""Tests of load lines in requests per second, and of the initial rates of searches."""

from __future__ import annotations

import math

import pytest

from perseus.peak.load_line import load_line, weights_along
from perseus.study.experiments.background import Run as Background
from perseus.study.experiments.peak import DEDICATED, Run

PEAKS = {"a": 100.0, "b": 40.0}
THREE = PEAKS | {"c": 20.0}


def line(run: Run, peaks=PEAKS):
    return load_line(run, list(peaks), peaks, {})


def test_a_dedicated_line_counts_in_requests_per_second():
    found, start = load_line(DEDICATED, ["a"], {}, {"a": 5.0})
    assert found.rates_rps(12) == (12.0,)
    assert start == pytest.approx(0.6 * 1000 / 5)


def test_a_mix_at_scale_1_is_what_dedicated_servers_carry():
    found, _ = line(Run.mix([3, 1]))
    assert found.rates_rps(1) == (75.0, 10.0)
    shares = [rate / PEAKS[name] for name, rate in zip("ab", found.rates_rps(0.8), strict=True)]
    assert sum(shares) == pytest.approx(0.8)


def test_a_tenant_that_is_not_in_the_mix_needs_no_peak():
    found, _ = line(Run.mix([1, 1, 0]), PEAKS | {"c": float("nan")})
    assert found.rates_rps(1) == (50.0, 20.0, 0.0)


@pytest.mark.parametrize("c", [20.0, 200.0])
def test_the_mix_of_a_demand_has_its_rates_whatever_the_peaks_are(c):
    found, start = line(Run.demanded([0.5, 0.3, 0.2]), peaks := PEAKS | {"c": c})
    rates = found.rates_rps(1)
    assert [rate / sum(rates) for rate in rates] == pytest.approx([0.5, 0.3, 0.2])
    assert sum(rate / peaks[name] for rate, name in zip(rates, peaks, strict=True)) == (
        pytest.approx(1)
    )
    assert start == pytest.approx(0.8)


def test_a_background_tenant_keeps_its_rate_and_the_other_rises():
    found, start = line(Run.hold("b", 25))
    assert found.rates_rps(0.0) == (0.0, 10.0)
    assert found.rates_rps(0.75) == (75.0, 10.0)
    assert start < 0.75


def test_beside_one_other_a_searched_tenant_is_on_the_line_that_holds_the_other():
    run = Background(name="x", searched="a", background_percent=25)
    assert line(run) == line(Run.hold("b", 25))


def test_all_but_the_searched_tenant_stay_at_shares_of_their_own_peaks():
    found, start = line(Background(name="x", searched="b", background_percent=30), THREE)
    assert found.rates_rps(0.0) == (30.0, 0.0, 6.0)
    assert found.rates_rps(0.5) == (30.0, 20.0, 6.0)
    assert start == pytest.approx(0.8 * (1 - 0.3 - 0.3))


@pytest.mark.parametrize(
    ("rates_rps", "base", "remaining"),
    [((5.0,), (5.0, 0.0, 5.0), 0.7), ((50.0, 4.0), (50.0, 0.0, 4.0), 0.3)],
)
def test_rates_that_stay_may_be_absolute_one_for_all_or_one_of_each(rates_rps, base, remaining):
    found, start = line(Background(name="x", searched="b", rates_rps=rates_rps), THREE)
    assert (found.base_rps, found.direction_rps) == (base, (0.0, 40.0, 0.0))
    assert start == pytest.approx(0.8 * remaining)


def test_beside_more_than_the_server_can_do_the_search_still_begins_somewhere():
    _, start = line(Background(name="x", searched="a", rates_rps=(60.0,)))
    assert start == pytest.approx(0.08)


def test_the_weights_of_a_demand_are_shares_of_dedicated_servers_in_percent():
    assert weights_along([10.0, 30.0, 0.01], [10.0, 10.0, 10.0]) == (25, 75, 1)
    assert weights_along([1.0, 1.0], [30.0, 10.0]) == (25, 75)
    assert weights_along([1.0, 1.0], [30.0, math.nan]) == ()
