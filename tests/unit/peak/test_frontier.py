"""Tests of the choice of the mixes of a frontier."""

from __future__ import annotations

import math

import pytest

from perseus.peak.frontier import MeasuredMix, next_weights, rays, round_robin
from perseus.peak.stats import Interval
from perseus.study.experiments.frontier import Settings, most_points

NOTHING = Interval(math.nan, math.nan, math.nan)


def measured(ratio, half, count):
    """Return `count` mixes, each chosen from the earlier mixes.

    Given the share of the first tenant, `ratio` returns the sharing ratio, and `half` returns half
    the width of its interval.
    """
    mixes = []
    for _ in range(count):
        weights = next_weights(2, mixes)
        share = weights[0] / sum(weights)
        found = ratio(share)
        mixes.append(
            MeasuredMix(weights, Interval(found, found - half(share), found + half(share)))
        )
    return mixes


def shares(mixes):
    return sorted(mix.weights[0] / sum(mix.weights) for mix in mixes)


def test_it_begins_in_the_middle_and_goes_on_to_the_quarters():
    mixes = measured(lambda share: 1.1, lambda share: 0.05, 3)
    assert [mix.weights for mix in mixes] == [(1, 1), (1, 3), (3, 1)]


def test_it_goes_where_the_frontier_bends():
    """The sharing ratio has its maximum at a share of 0.8.

    At least one of nine mixes lies within 0.05 of the maximum.
    """
    mixes = measured(lambda share: 1 + min(share, 4 * (1 - share)), lambda share: 0.01, 9)
    near = [share for share in shares(mixes) if 0.7 <= share <= 0.9]
    assert len(near) >= 4
    assert min(abs(share - 0.8) for share in near) < 0.05


def test_it_goes_where_the_frontier_is_uncertain():
    mixes = measured(lambda share: 1.0, lambda share: 0.4 if share > 0.6 else 0.01, 9)
    assert sum(share > 0.5 for share in shares(mixes)) >= 6


def test_a_mix_without_an_estimate_is_not_asked_again_but_its_neighbours_are():
    mixes = [MeasuredMix((1, 1), NOTHING)]
    for _ in range(6):
        mixes.append(MeasuredMix(next_weights(2, mixes), Interval(1.0, 0.99, 1.01)))
    assert len(set(shares(mixes))) == len(mixes)
    assert max(abs(share - 0.5) for share in shares(mixes)[2:5]) <= 0.25


def test_without_bend_or_doubt_it_still_divides_the_widest_gap():
    mixes = measured(lambda share: 1.0, lambda share: 0.0, 7)
    assert len(set(shares(mixes))) == 7


@pytest.mark.parametrize("tenants", [3, 4, 12])
def test_of_more_tenants_all_come_first_then_pairs_then_more_of_each(tenants):
    mixes = []
    while len(mixes) < most_points(tenants):
        mixes.append(MeasuredMix(next_weights(tenants, mixes), NOTHING))
    weights = [mix.weights for mix in mixes]
    assert weights == rays(tenants)
    assert len(set(weights)) == len(weights)
    assert weights[0] == (1,) * tenants
    assert all(sum(each) == 2 for each in weights[1 : 1 + math.comb(tenants, 2)])
    assert all(sum(each) == tenants + 1 for each in weights[-tenants:])
    with pytest.raises(IndexError):
        next_weights(tenants, mixes)


@pytest.mark.parametrize("tenants", [3, 4, 7, 12])
def test_pairs_come_in_rounds_in_which_each_tenant_is_met_once(tenants):
    pairs = round_robin(tenants)
    assert len(set(pairs)) == math.comb(tenants, 2)
    each = tenants // 2
    for start in range(0, len(pairs), each):
        met = [tenant for pair in pairs[start : start + each] for tenant in pair]
        assert len(set(met)) == 2 * each


def test_one_of_the_points_of_three_tenants_is_the_demand_s():
    asked = Settings(kind="frontier", points=3, predict=True)
    first, *others = asked.runs_for((0.5, 0.3, 0.2))
    assert (first.name, first.rate_shares) == ("mix-demand", (0.5, 0.3, 0.2))
    assert first.kind == "peak" and first.needs_runs == ()
    assert others == list(asked.runs())[:2]
    # without a demand, and for two tenants
    for of_all in ((), (0.4, 0.6)):
        assert list(asked.runs_for(of_all)) == list(asked.runs())


def test_an_error_is_only_for_predictions():
    asked = Settings(kind="frontier", error_percent=5.0)
    assert [at for at, _ in asked.problems(["a", "b"])] == [("error_percent",)]
    assert not any(run.predict for run in Settings(kind="frontier").runs())
    for within in (None, 8.0):
        runs = list(Settings(kind="frontier", predict=True, error_percent=within).runs())
        assert all(run.predict and run.predict_within_percent == within for run in runs)


@pytest.mark.parametrize(
    ("tenants", "points", "place"), [("a", 5, ()), ("abc", 8, ("points",)), ("abc", 7, None)]
)
def test_what_it_cannot_have_is_said(tenants, points, place):
    problems = list(Settings(kind="frontier", points=points).problems(list(tenants)))
    assert [at for at, _ in problems] == ([] if place is None else [place])
