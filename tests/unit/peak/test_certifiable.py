"""What a preset cannot certify is known from its windows and the requests that an SLA needs."""

import math

import numpy as np
import pytest

from perseus.peak.certifiable import begins_too_slow, lowest_rps, too_slow
from perseus.peak.lindley import departures_s
from perseus.peak.stats import fewest_requests
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla

P95, P99, P999 = (Sla(latency_ms=100, percentile=percent) for percent in (95, 99, 99.9))
QUICK, STANDARD = (PRESETS[name].settings for name in ("quick", "standard"))


@pytest.mark.parametrize("sla", [P95, P99])
def test_the_lowest_rate_gives_the_longest_window_its_fewest_requests(sla):
    for settings in (QUICK, STANDARD):
        longest_s = settings.confirm.max_s
        assert lowest_rps(settings, sla) * longest_s == pytest.approx(fewest_requests(sla.allowed))


def test_a_window_that_ends_before_it_has_them_certifies_nothing():
    for preset in PRESETS.values():
        ends_too_early = preset.settings.confirm.requests < fewest_requests(P999.allowed)
        assert math.isinf(lowest_rps(preset.settings, P999)) == ends_too_early
    assert not math.isinf(lowest_rps(STANDARD, P999))


def test_a_slow_model_is_told_with_the_preset_that_can():
    rate = (lowest_rps(QUICK, P99) + lowest_rps(STANDARD, P99)) / 2
    said = too_slow("quick", [P99, P95], [rate, 1000.0], ["slow", "fast"])
    assert said.startswith("slow at up to ") and "fast" not in said
    assert f"quick certifies p99 from {lowest_rps(QUICK, P99):.3g} requests/s on" in said
    better = f"standard certifies p99 from {lowest_rps(STANDARD, P99):.3g} requests/s on"
    assert said.endswith(better)


def test_rates_that_a_preset_can_certify_are_not_worth_a_word():
    assert too_slow("quick", [P95, P99], [1000.0, 0.0], ["a", "idle"]) == ""


def test_the_rate_that_counts_is_the_highest_that_is_tried():
    """A rate is certified below the limit: at the limit itself there would be just enough."""
    limit = lowest_rps(QUICK, P99)
    assert too_slow("quick", [P99], [1.1 * limit], ["a"])
    assert not too_slow("quick", [P99], [1.2 * limit], ["a"])


def test_where_no_preset_can_it_says_so():
    assert too_slow("quick", [P95], [0.01], ["a"]).endswith("as no preset does")
    assert too_slow("smoke", [P999], [1000.0], ["a"]).startswith(
        "a at up to 850 requests/s: smoke certifies p99.9 at no rate, "
    )


def test_before_a_search_is_told_where_it_begins_which_is_no_limit():
    names, alone_ms = ["a", "idle"], {"a": 70.0, "idle": 70.0}
    lenient = [Sla(latency_ms=1000.0)] * 2
    said = begins_too_slow("quick", lenient, [3.0, 0.0], names, alone_ms)
    assert said.startswith(
        "a begins at 3 requests/s: quick certifies p95 from 8.12 requests/s on, "
    )
    assert "up to" not in said and "idle" not in said
    assert begins_too_slow("quick", lenient, [8.2, 0.0], names, alone_ms) == ""


def test_an_sla_that_leaves_little_for_waiting_has_a_limit_far_below_where_a_search_begins():
    """60 ms of work within 65 ms: who finds another served is late, unless that is soon done."""
    tight, alone_ms = [Sla(latency_ms=65.0)], {"a": 60.0}
    said = begins_too_slow("quick", tight, [10.0], ["a"], alone_ms)
    assert said.startswith(
        "a, served one request after the other, keeps p95 within 65 ms up to about 0.909 requests/s"
        ": quick certifies p95 from 8.12 requests/s on, "
    )
    rng = np.random.default_rng(0)
    for rate_rps, share in ((0.909, 0.05), (2.0, 0.1)):
        arrival_s = np.cumsum(rng.exponential(1 / rate_rps, 200_000))
        latency_s = departures_s(arrival_s, np.full(len(arrival_s), 0.06)) - arrival_s
        assert np.mean(latency_s > 0.065) == pytest.approx(share, rel=0.15)
    assert begins_too_slow("quick", [Sla(latency_ms=500.0)], [10.0], ["a"], alone_ms) == ""
