"""Tests of the rates that a preset cannot certify, given the requests that an SLA needs."""

import math

import numpy as np
import pytest
from scipy.stats import poisson

from perseus.peak.certifiable import begins_too_slow, too_slow
from perseus.peak.durations import counted_s, longest_s, lowest_rps
from perseus.peak.lindley import departures_s
from perseus.peak.stats import fewest_requests
from perseus.peak.window import Phase
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla

P95, P99, P999 = (Sla(latency_ms=100, percentile=percent) for percent in (95, 99, 99.9))
SMOKE, QUICK, STANDARD, PUBLICATION = (PRESETS[name].settings for name in PRESETS)


@pytest.mark.parametrize("sla", [P95, P99])
def test_at_the_lowest_rate_the_longest_window_mostly_has_the_fewest_requests(sla):
    """At the lowest rate, a certification window has enough random arrivals with a probability of
    over 95 %."""
    for settings in (QUICK, STANDARD, PUBLICATION):
        lowest, fewest = lowest_rps(settings, sla), fewest_requests(sla.allowed)
        lasts_s = counted_s(Phase.CERTIFY, settings, [sla], [lowest])
        assert lasts_s == settings.slow_certify_s
        assert poisson.sf(fewest - 1, lowest * lasts_s) > 0.95
        if sla is P95:  # p99 needs so many requests that a rate 0.9 times as high also has enough
            assert poisson.sf(fewest - 1, 0.9 * lowest * lasts_s) < 0.95


@pytest.mark.parametrize("sla", [P95, P99])
def test_a_window_that_certifies_waits_for_three_times_as_many_within_two_minutes(sla):
    fewest = fewest_requests(sla.allowed)
    slow_rps = 3 * fewest / 119
    for rates_rps in ([slow_rps], [slow_rps, 50 * slow_rps], [0.0, slow_rps]):
        slas = [sla] * len(rates_rps)
        assert counted_s(Phase.CERTIFY, QUICK, slas, rates_rps) == pytest.approx(119)
        assert counted_s(Phase.NEAR_LIMIT, QUICK, slas, rates_rps) < 20
    assert counted_s(Phase.CERTIFY, QUICK, [sla], [slow_rps / 2]) == 120
    # the window has its 4,000 requests
    assert counted_s(Phase.CERTIFY, QUICK, [sla], [1000.0]) == 4


def test_a_window_waits_for_the_tenant_that_needs_most():
    """An SLA at p99 needs 3 x 662 requests, which take 20 s at 100 requests/s.

    At 10 requests/s, this SLA needs the longest window: 120 s.
    """
    p90 = Sla(latency_ms=100, percentile=90)
    assert counted_s(Phase.CERTIFY, QUICK, [P99, p90], [100.0, 10.0]) == pytest.approx(19.86)
    assert counted_s(Phase.CERTIFY, QUICK, [p90, P99], [100.0, 10.0]) == 120


@pytest.mark.parametrize(
    ("settings", "sla", "rate_rps", "lasts_s"),
    [
        (QUICK, P99, 6.0, 16),  # 662 requests would take 110 s, and often longer
        (QUICK, P999, 100.0, 16),  # the window ends after 4,000 of 6,636 necessary requests
        (SMOKE, P99, 20.0, 2.5),  # the window ends after 400 requests, plus the 50 of any window
        (SMOKE, P95, 20.0, 2.5),  # smoke only shows that Perseus works
    ],
)
def test_what_cannot_be_certified_is_not_waited_for(settings, sla, rate_rps, lasts_s):
    assert rate_rps < lowest_rps(settings, sla)
    assert counted_s(Phase.CERTIFY, settings, [sla], [rate_rps]) == lasts_s
    beside = counted_s(Phase.CERTIFY, settings, [sla, P95], [rate_rps, 1000.0])
    assert beside == lasts_s


def test_a_search_takes_at_most_as_long_as_one_that_begins_below_what_it_certifies():
    """The longest time of a search never rises with the start rate."""
    lenient = [Sla(latency_ms=4000)]
    at_most = [longest_s(QUICK, lenient, [rate]) for rate in (0.9, 1.1, 1.3, 1.5, 5.0, 50.0)]
    assert at_most == sorted(at_most, reverse=True)


def test_a_window_that_ends_before_it_has_them_certifies_nothing():
    for preset in PRESETS.values():
        ends_too_early = preset.settings.certify.requests < fewest_requests(P999.allowed)
        assert math.isinf(lowest_rps(preset.settings, P999)) == ends_too_early
    assert not math.isinf(lowest_rps(STANDARD, P999))


def test_a_slow_model_is_told_with_the_preset_that_can():
    rate = (lowest_rps(QUICK, P99) + lowest_rps(PUBLICATION, P99)) / 2
    text = too_slow("quick", [P99, P95], [rate, 1000.0], ["slow", "fast"])
    assert text.startswith("for slow, certification windows send at most ") and "fast" not in text
    words = "certifies an SLA on the p99 at"
    assert f"quick {words} {lowest_rps(QUICK, P99):.3g} requests/s or more" in text
    lowest = f"{lowest_rps(PUBLICATION, P99):.3g} requests/s or more"
    assert text.endswith(f"publication {words} {lowest}")


def test_rates_that_a_preset_can_certify_are_not_worth_a_word():
    assert too_slow("quick", [P95, P99], [1000.0, 0.0], ["a", "idle"]) == ""


def test_the_rate_that_counts_is_the_highest_that_is_tried():
    """The highest rate that the search tries to certify is 82 % of the limit.

    In the test, a window at the limit has enough requests, but a window at 82 % of the limit has
    too few requests.
    """
    limit = lowest_rps(QUICK, P99)
    assert too_slow("quick", [P99], [1.1 * limit], ["a"])
    assert not too_slow("quick", [P99], [1.25 * limit], ["a"])


def test_where_no_preset_can_it_says_so():
    assert too_slow("quick", [P95], [0.01], ["a"]).endswith(
        "no preset certifies a rate as low as this"
    )
    assert too_slow("smoke", [P999], [1000.0], ["a"]).startswith(
        "for a, certification windows send at most 820 requests/s:"
        " the preset smoke certifies an SLA on the p99.9 at no rate, and "
    )


def test_before_a_search_is_told_where_it_begins_which_is_no_limit():
    names, alone_ms = ["a", "idle"], {"a": 70.0, "idle": 70.0}
    lenient = [Sla(latency_ms=1000.0)] * 2
    text = begins_too_slow("quick", lenient, [0.5, 0.0], names, alone_ms)
    assert text.startswith(
        "the rate of a starts at 0.5 requests/s: the preset quick certifies an SLA on the p95 at"
        " 1.3 requests/s or more, and "
    )
    assert "up to" not in text and "idle" not in text
    assert begins_too_slow("quick", lenient, [1.4, 0.0], names, alone_ms) == ""


def test_an_sla_that_leaves_little_for_waiting_has_a_limit_far_below_where_a_search_begins():
    """The service time is 60 ms and the limit 65 ms, so a request that waits is usually late."""
    tight, alone_ms = [Sla(latency_ms=65.0)], {"a": 60.0}
    text = begins_too_slow("quick", tight, [10.0], ["a"], alone_ms)
    assert text.startswith(
        "a server that handles the requests of a one after the other keeps the p95 within 65 ms"
        " only up to about 0.909 requests/s: the preset quick certifies an SLA on the p95 at"
        " 1.3 requests/s or more, and "
    )
    rng = np.random.default_rng(0)
    for rate_rps, share in ((0.909, 0.05), (2.0, 0.1)):
        arrival_s = np.cumsum(rng.exponential(1 / rate_rps, 200_000))
        latency_s = departures_s(arrival_s, np.full(len(arrival_s), 0.06)) - arrival_s
        assert np.mean(latency_s > 0.065) == pytest.approx(share, rel=0.15)
    assert begins_too_slow("quick", [Sla(latency_ms=500.0)], [10.0], ["a"], alone_ms) == ""
