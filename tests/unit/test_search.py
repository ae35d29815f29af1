"""The search against simulated servers in virtual time, whose limit is known.

Shares are over many seeds. The bounds are those that docs/method.md states for the quick preset.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perseus.precision import PRESETS
from perseus.search import LoadLine, Outcome, Peak, Phase, find_peak
from perseus.simulation import SimulatedServer, deterministic, exponential
from perseus.window import Sla, Verdict

QUICK = PRESETS["quick"].settings
ONE = LoadLine((0.0,), (1.0,))
MM1_SLA = Sla(95, 50)
MM1_LIMIT_RPS = 200 - np.log(20) / 0.05  # P(T > t) = exp(-(mu - lambda) t) in M/M/1
MD1_LIMIT_RPS = 169.6  # M/D/1 with 5 ms and p95 <= 50 ms, by the Crommelin formula


def search(seed: int, service=None, sla: Sla = MM1_SLA, settings=QUICK, **server) -> Peak:
    rng = np.random.default_rng(seed)
    system = SimulatedServer([service or exponential(0.005)], rng, **server)
    return find_peak(system, ONE, [sla], settings, start=120, rng=rng)


@pytest.fixture(scope="module", params=["M/M/1", "M/D/1"])
def peaks(request) -> tuple[float, list[Peak]]:
    service = exponential(0.005) if request.param == "M/M/1" else deterministic(0.005)
    limit = MM1_LIMIT_RPS if request.param == "M/M/1" else MD1_LIMIT_RPS
    return limit, [search(seed, service) for seed in range(100)]


def test_the_certified_rate_seldom_exceeds_the_truth(peaks):
    limit, found = peaks
    assert np.mean([peak.certified > limit for peak in found]) <= 0.1


def test_nearly_every_search_certifies_a_rate_not_far_below_the_truth(peaks):
    limit, found = peaks
    assert np.mean([peak.outcome is Outcome.OK for peak in found]) >= 0.95
    assert np.nanmean([peak.certified for peak in found]) >= 0.78 * limit


def test_the_estimate_is_nearly_unbiased_and_its_interval_mostly_covers(peaks):
    limit, found = peaks
    assert np.mean([peak.estimate for peak in found]) == pytest.approx(limit, rel=0.03)
    intervals = [np.percentile(peak.bootstrap, [2.5, 97.5]) for peak in found]
    # 95 % intervals; what the quick preset reaches is stated in docs/method.md.
    assert np.mean([low <= limit <= high for low, high in intervals]) >= 0.7


def test_certified_is_at_most_the_estimate_and_below_the_first_failing_rate(peaks):
    for peak in peaks[1]:
        assert not peak.certified > peak.estimate
        assert not peak.certified >= peak.first_failing


def test_more_evidence_gives_a_better_estimate():
    standard = PRESETS["standard"].settings
    quick, thorough = (
        [search(seed, settings=settings).estimate for seed in range(20)]
        for settings in (QUICK, standard)
    )
    assert np.std(thorough) < np.std(quick)


def test_the_certified_window_is_a_fresh_one_that_passed():
    peak = search(1)
    window = peak.windows[peak.certified_window]
    assert (window.phase, window.verdict, window.scale) == (Phase.CONFIRM, "pass", peak.certified)


def test_an_sla_below_the_service_time_is_infeasible():
    peak = search(1, deterministic(0.005), Sla(95, 4))
    assert peak.outcome is Outcome.INFEASIBLE and np.isnan(peak.certified)


def test_a_slow_client_is_not_taken_for_a_slow_server():
    peak = search(1, send_lag_s=0.005)
    assert peak.outcome is Outcome.CLIENT_LIMITED and "send lag" in peak.reason


def test_a_leak_of_two_percent_is_found_out():
    """It leaves 98 % of the answers within the SLA: only counting what came back can tell."""
    standard = PRESETS["standard"].settings
    found = [search(seed, settings=standard, leak=0.02) for seed in range(8)]
    assert all(np.isnan(peak.certified) for peak in found)
    assert "answered 9" in found[0].reason


def test_a_stall_of_300_ms_in_every_window_lowers_the_peak():
    """The stall delays 0.3 s x rate requests of a window: more than 5 % of 2.5 s, not of 16 s."""
    calm = np.mean([search(seed).estimate for seed in range(10)])
    stalled = [search(seed, stall=(3.0, 0.3)).estimate for seed in range(10)]
    assert np.nanmean(stalled) < 0.97 * calm


def test_two_workers_carry_more_than_twice_the_load_of_one():
    one = np.mean([search(seed).estimate for seed in range(10)])
    two = np.mean([search(seed, workers=2).estimate for seed in range(10)])
    assert two > 2 * one


def test_a_tenant_that_breaks_its_sla_fails_the_point_for_all():
    rng = np.random.default_rng(3)
    services = [deterministic(0.005), deterministic(0.020)]
    slas = [Sla(95, 100), Sla(95, 25)]  # the second tolerates hardly any waiting
    line = LoadLine((0.0, 0.0), (100.0, 10.0))
    strict = find_peak(SimulatedServer(services, rng), line, slas, QUICK, start=0.5, rng=rng)
    slas[1] = Sla(95, 100)
    lenient = find_peak(SimulatedServer(services, rng), line, slas, QUICK, start=0.5, rng=rng)
    assert strict.estimate < 0.5 * lenient.estimate


def test_a_held_tenant_keeps_its_rate_while_the_other_rises():
    rng = np.random.default_rng(4)
    services = [deterministic(0.005), deterministic(0.005)]
    line = LoadLine((60.0, 0.0), (0.0, 169.0))
    peak = find_peak(SimulatedServer(services, rng), line, [MM1_SLA] * 2, QUICK, start=0.5, rng=rng)
    assert {window.tenants[0].offered_rps for window in peak.windows} == {60.0}
    assert 60 + 169 * peak.estimate == pytest.approx(MD1_LIMIT_RPS, rel=0.12)


def test_a_search_is_reproducible():
    first, second = search(7), search(7)
    assert first.estimate == second.estimate and len(first.windows) == len(second.windows)


def test_a_search_is_bounded_when_the_server_never_fails():
    settings = replace(QUICK, max_windows=6)
    peak = search(1, deterministic(1e-9), settings=settings)
    assert len(peak.windows) <= 6 + 2 * len(peak.windows[-1].tenants) + 4


def test_the_first_failing_rate_lies_above_the_certified_one():
    found = [search(seed) for seed in range(30)]
    known = [peak for peak in found if not np.isnan(peak.first_failing)]
    assert len(known) > 10
    assert all(peak.first_failing > peak.certified for peak in known)


def test_every_fresh_window_must_pass_when_several_are_asked_for():
    settings = replace(QUICK, confirmations=3)
    peak = search(2, settings=settings)
    last = peak.windows[peak.certified_window - 2 : peak.certified_window + 1]
    assert [w.phase for w in last] == [Phase.CONFIRM] * 3
    assert {(w.scale, str(w.verdict)) for w in last} == {(peak.certified, "pass")}


def test_an_idle_tenant_changes_nothing():
    rng = np.random.default_rng(5)
    system = SimulatedServer([deterministic(0.005)] * 2, rng)
    line = LoadLine((0.0, 0.0), (169.0, 0.0))
    peak = find_peak(system, line, [MM1_SLA] * 2, QUICK, start=0.8, rng=rng)
    assert peak.estimate * 169 == pytest.approx(MD1_LIMIT_RPS, rel=0.12)


def test_the_worst_tenant_decides_a_window():
    """Invalid before fail: what the client spoilt says nothing of the server."""
    window = search(1).windows[0]
    (tenant,) = window.tenants
    verdicts = [Verdict.PASS, Verdict.UNDECIDED, Verdict.FAIL, Verdict.INVALID]
    for i, worst in enumerate(verdicts):
        mixed = tuple(replace(tenant, verdict=verdict) for verdict in verdicts[: i + 1])
        assert replace(window, tenants=mixed).verdict is worst
