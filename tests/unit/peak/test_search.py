"""Tests of the search against simulated servers in virtual time, whose limit is known.

docs/explanation/accuracy.md states the bounds for the preset `quick`. The tests use few seeds, so
the bounds allow for chance. `make bench BENCH=coverage` computes the statistics.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.simulation import (
    SimulatedLoad,
    SimulatedServer,
    as_recorded,
    batching,
    deterministic,
    drifting,
    even,
    exponential,
    wandering,
    workers,
)
from perseus.peak import stats
from perseus.peak.durations import ATTEMPTS, CLUSTERED, ENOUGH
from perseus.peak.lindley import departures_s
from perseus.peak.line_model import LineModel
from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import Outcome, Peak, cliff, found_limit
from perseus.peak.search import _Search, find_peak
from perseus.peak.tenant_limit import Limit
from perseus.peak.verdict import Verdict, judge
from perseus.peak.virtual_queue import VirtualQueue
from perseus.peak.window import Phase
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla

SEEDS = 10
QUICK = PRESETS["quick"].settings
ONE = LoadLine((0.0,), (1.0,))
MM1_SLA = Sla(latency_ms=50)
MM1_LIMIT_RPS = 200 - np.log(20) / 0.05  # P(T > t) = exp(-(mu - lambda) t) in M/M/1
MD1_LIMIT_RPS = 169.6  # M/D/1 with 5 ms and p95 <= 50 ms, by the Crommelin formula


def search(
    seed: int,
    service=None,
    sla: Sla = MM1_SLA,
    settings=QUICK,
    start=120,
    kind=SimulatedServer,
    **server,
) -> Peak:
    rng = np.random.default_rng(seed)
    service = service or exponential(0.005)
    return find_peak(
        kind([service], rng, **server),
        ONE,
        [sla],
        settings,
        start=start,
        unloaded_ms=[1000 * service(rng, 40)],
        names=["tenant"],
        rng=rng,
    )


def searches(count: int, service=None, **kwargs) -> list[Peak]:
    return [search(seed, service, **kwargs) for seed in range(count)]


def search_two(seed: int, services, line: LoadLine, slas, start: float = 0.5) -> Peak:
    rng = np.random.default_rng(seed)
    return find_peak(
        SimulatedServer(services, rng),
        line,
        slas,
        QUICK,
        start=start,
        unloaded_ms=[1000 * service(rng, 40) for service in services],
        names=["first", "second"],
        rng=rng,
    )


BATCHING = batching(8, max_queue_delay_s=0.002, overhead_s=0.004)
# Server, service time, SLA and limit. The limit follows from theory for the first two servers, and
# from a long simulation for the others.
SERVERS = {
    "M/M/1": ({}, exponential(0.005), MM1_SLA, MM1_LIMIT_RPS),
    "M/D/1": ({}, deterministic(0.005), MM1_SLA, MD1_LIMIT_RPS),
    "M/D/4": (
        {"discipline": workers(4)},
        deterministic(0.020),
        Sla(latency_ms=100),
        182.8,
    ),
    "batching": (
        {"discipline": BATCHING},
        deterministic(0.001),
        Sla(latency_ms=30),
        577.6,
    ),
}
WIDEST = {"M/M/1": 0.41, "M/D/1": 0.20, "M/D/4": 0.31, "batching": 0.15}
"""Largest mean width of the 95 % interval, as a share of the limit."""


@pytest.fixture(params=SERVERS)
def peaks(request) -> tuple[str, float, list[Peak]]:
    return request.param, SERVERS[request.param][-1], found_on(request.param)


@cache
def found_on(name: str) -> list[Peak]:
    """Several tests use the same searches."""
    return [search_on(name, seed) for seed in range(SEEDS)]


def search_on(name: str, seed: int) -> Peak:
    server, service, sla, _ = SERVERS[name]
    peak = search(seed, service, sla, **server)
    # The transfer of a window's requests between processes would take longer than the search.
    return replace(peak, windows=tuple(replace(window, seen=None) for window in peak.windows))


def test_the_certified_rate_seldom_exceeds_the_truth(peaks):
    _, limit, found = peaks
    assert np.mean([peak.certified > limit for peak in found]) <= 1 - QUICK.confidence


def test_nearly_every_search_certifies_a_rate_not_far_below_the_truth(peaks):
    name, limit, found = peaks
    assert np.mean([peak.outcome is Outcome.OK for peak in found]) >= 0.95
    # With four workers, the limit is nearer to saturation, where clusters of late requests are
    # largest.
    share = 0.7 if name == "M/D/4" else 0.78
    assert np.nanmean([peak.certified for peak in found]) >= share * limit


def test_the_interval_of_the_estimate_covers_the_truth_as_often_as_it_says(peaks):
    _, limit, found = peaks
    stated = [peak for peak in found if len(peak.posterior)]
    intervals = [np.percentile(peak.posterior, [2.5, 97.5]) for peak in stated]
    # The bound is the nominal coverage of 95 %, minus two standard errors.
    assert np.mean([low <= limit <= high for low, high in intervals]) >= 0.95 - 2 * np.sqrt(
        0.95 * 0.05 / SEEDS
    )


def test_the_interval_of_the_estimate_is_not_wide(peaks):
    name, limit, found = peaks
    ends = [np.percentile(peak.posterior, [2.5, 97.5]) for peak in found if len(peak.posterior)]
    assert np.mean(np.diff(ends)) < WIDEST[name] * limit


def test_the_estimate_is_nearly_unbiased(peaks):
    name, limit, found = peaks
    relative = np.array([peak.estimate for peak in found]) / limit
    assert np.nanmean(relative) == pytest.approx(1, abs=0.03)
    # If the server serves one request after another, the search corrects the error of random
    # arrivals and service times.
    assert np.nanstd(relative) < (0.035 if name == "M/M/1" else 0.04)


def test_certified_is_at_most_the_estimate_and_below_the_first_failing_rate(peaks):
    found = peaks[2]
    assert np.mean([not np.isnan(peak.first_failing) for peak in found]) > 0.3
    for peak in found:
        assert not peak.certified > peak.estimate
        assert not peak.certified >= peak.first_failing


def test_more_evidence_gives_a_better_estimate():
    several = 2 * SEEDS  # the ratio of two standard deviations needs more searches than a mean
    thorough = searches(several, settings=PRESETS["standard"].settings)
    quick_sd = np.std([peak.estimate for peak in searches(several)])
    assert np.std([peak.estimate for peak in thorough]) < 0.7 * quick_sd


def test_the_certified_window_is_a_fresh_one_that_passed():
    peak = search(1)
    window = peak.windows[peak.certified_window]
    assert (window.phase, window.verdict, window.scale) == (Phase.CERTIFY, "pass", peak.certified)


def test_an_sla_below_the_service_time_is_infeasible():
    peak = search(1, deterministic(0.005), Sla(latency_ms=4))
    assert peak.outcome is Outcome.INFEASIBLE and np.isnan(peak.certified)


def slow_for_some(rng: np.random.Generator, n: int, share: float = 0.03) -> np.ndarray:
    return np.where(rng.random(n) < share, 0.5, 0.002)


def test_an_sla_that_only_a_small_share_of_the_first_load_keeps_is_not_infeasible():
    """In a long simulation, the SLA holds up to 1.5/s.

    The search begins at the rate that follows from the median service time.
    """
    found = searches(12, slow_for_some, sla=Sla(latency_ms=60), start=300)
    assert {peak.outcome for peak in found} <= {Outcome.OK, Outcome.UNCERTIFIED}
    assert np.mean([peak.certified > 1.5 for peak in found]) <= 1 - QUICK.confidence
    assert all(0.5 < peak.estimate < 30 for peak in found)


def test_what_few_requests_leave_undecided_is_not_infeasible():
    """Only 4 % of the requests are late, and the SLA allows 5 %. A window of 57 requests is too
    short to show the difference."""
    peak = search(3, partial(slow_for_some, share=0.04), Sla(latency_ms=60), start=300)
    assert peak.outcome is Outcome.UNCERTIFIED
    assert np.isnan(peak.estimate) and not len(peak.posterior)
    assert peak.reason == (
        "no rate passed, and the verdict at the lowest tested rate is undecided:"
        " for tenant at 0.7 requests/s, the server answered 100.0% of the requests,"
        " with a p95 of 500.0 ms (57 requests are too few: an SLA on the p95 needs at least 130)"
    )


def test_the_search_ends_where_windows_would_have_too_few_requests_or_others_stay():
    slow = search(1, deterministic(0.005), Sla(latency_ms=4), start=120)
    beside = LoadLine((230.0, 0.0), (0.0, 169.0))
    stays = search_two(5, [deterministic(0.005)] * 2, beside, [MM1_SLA] * 2)
    for peak, least in ((slow, 0.4), (stays, 0.5 / 30)):
        tried = [window.scale for window in peak.windows if window.on_the_line]
        assert peak.outcome is Outcome.INFEASIBLE and min(tried) >= least


def test_a_slow_client_is_not_taken_for_a_slow_server():
    peak = search(1, send_lag_s=0.02)
    assert peak.outcome is Outcome.CLIENT_LIMITED and "send lag" in peak.reason


def test_a_client_that_is_always_a_little_late_is_put_up_with():
    """The send lag adds to the latency, so the estimate is below the limit of the server."""
    found = [search(seed, deterministic(0.005), send_lag_s=0.005) for seed in range(4)]
    first = [window.verdict for window in found[0].windows if window.on_the_line][:3]
    assert first[:2] == [Verdict.INVALID] * 2 and first[2] is not Verdict.INVALID
    assert {peak.outcome for peak in found} == {Outcome.OK}
    assert all(0.85 * MD1_LIMIT_RPS < peak.estimate < MD1_LIMIT_RPS for peak in found)


def test_a_leak_of_two_percent_is_found_out():
    """The server answers 98 % of the requests within the SLA, and does not answer the others.

    An SLA on the p95 allows 5 % late requests, so only the missing responses show the leak.
    """
    standard = PRESETS["standard"].settings
    found = searches(2, settings=standard, leak=0.02)
    assert all(np.isnan(peak.certified) for peak in found)
    assert "answered 9" in found[0].reason


@dataclass
class Hiccups(SimulatedServer):
    """A server whose every third window is invalid, since the client sends too late."""

    windows: int = 0

    def offer(self, rates_rps, duration_s):
        self.windows += 1
        self.send_lag_s = 0.01 if self.windows % 3 == 0 else 0.0
        return super().offer(rates_rps, duration_s)


def test_a_client_that_stumbles_now_and_then_does_not_end_a_search():
    for seed in range(5):
        peak = search(seed, deterministic(0.005), kind=Hiccups)
        line = [window for window in peak.windows if window.on_the_line]
        invalid = [window for window in line if not window.tenants[0].punctual]
        assert 0.2 < len(invalid) / len(line) < 0.4
        assert {window.verdict for window in invalid} <= {Verdict.INVALID, Verdict.FAIL}
        again = [(w, after) for w, after in pairwise(line) if w.verdict is Verdict.INVALID]
        assert again and all((w.phase, w.scale) == (a.phase, a.scale) for w, a in again)
        assert peak.outcome is Outcome.OK
        assert peak.estimate == pytest.approx(MD1_LIMIT_RPS, rel=0.15)


@dataclass
class LateSends(SimulatedServer):
    """A server to which the client sends late at some rates."""

    late_rps: tuple[float, float] = (0.0, np.inf)

    def offer(self, rates_rps, duration_s):
        low, high = self.late_rps
        self.send_lag_s = 0.03 if low < rates_rps[0] < high else 0.0
        return super().offer(rates_rps, duration_s)


def search_with_late_sends(late_rps: tuple[float, float], start: float, sla=MM1_SLA) -> Peak:
    return search(3, deterministic(0.005), sla, start=start, kind=LateSends, late_rps=late_rps)


def test_an_overloaded_server_is_what_limits_even_if_sends_get_late_then():
    peak = search_with_late_sends((200, np.inf), start=150)
    overloaded = [window for window in peak.windows if window.scale > 200]
    assert [window.verdict for window in overloaded] == [Verdict.FAIL]
    assert peak.outcome is Outcome.OK
    assert peak.estimate == pytest.approx(MD1_LIMIT_RPS, rel=0.05)


def test_a_client_that_is_late_below_the_servers_limit_is_what_limits():
    peak = search_with_late_sends((0, 200), start=250)
    assert {window.verdict for window in peak.windows} >= {Verdict.FAIL, Verdict.INVALID}
    assert peak.outcome is Outcome.CLIENT_LIMITED and "send lag" in peak.reason


@dataclass
class Neighbours(SimulatedServer):
    """A server beside other processes, which use its cores in `of_three` of three windows."""

    of_three: int = 3
    windows: int = 0

    @contextmanager
    def offer(self, rates_rps, duration_s):
        self.windows += 1
        shared = self.windows % 3 < self.of_three
        self.send_lag_s = 0.0 if shared else 0.03
        with super().offer(rates_rps, duration_s) as load:
            yield SimpleNamespace(
                until=lambda s: replace(load.until(s), other_cpu_share=0.6 if shared else 0.0)
            )


@pytest.mark.parametrize(
    ("of_three", "outcome", "reason"),
    [
        (3, Outcome.DISTURBED, "other processes used 60% of the server's cores"),
        (2, Outcome.DISTURBED, "other processes used 60% of the server's cores"),
        (1, Outcome.CLIENT_LIMITED, "send lag"),
    ],
)
def test_what_other_processes_did_is_not_the_clients_limit(of_three, outcome, reason):
    peak = search(1, deterministic(0.005), kind=Neighbours, of_three=of_three)
    assert peak.outcome is outcome and reason in peak.reason


def test_a_client_that_is_late_only_where_more_is_offered_than_fails_anyway_limits_nothing():
    peak = search_with_late_sends((100, 130), start=120, sla=Sla(latency_ms=4))
    verdicts = [window.verdict for window in peak.windows if window.on_the_line]
    assert verdicts[:3] == [Verdict.INVALID] * 3 and set(verdicts[3:]) == {Verdict.FAIL}
    assert peak.outcome is Outcome.INFEASIBLE


def test_a_stall_of_300_ms_in_every_window_lowers_the_peak():
    """At most 5 % of the requests may be late. During a stall of 0.3 s, 12 % of the requests of a
    window of 2.5 s arrive, but only 2 % of the requests of a window of 16 s."""
    stalled = [peak.estimate for peak in searches(5, stall=(3.0, 0.3))]
    assert np.nanmean(stalled) < 0.97 * np.mean([peak.estimate for peak in found_on("M/M/1")])


def test_two_workers_carry_more_than_twice_the_load_of_one():
    one = np.mean([peak.estimate for peak in found_on("M/M/1")])
    two = np.mean([peak.estimate for peak in searches(4, discipline=workers(2))])
    assert two > 2 * one


def test_a_tenant_that_breaks_its_sla_fails_the_point_for_all():
    services = [deterministic(0.005), deterministic(0.020)]
    line = LoadLine((0.0, 0.0), (100.0, 10.0))
    # The second SLA leaves hardly any time for queueing.
    strict = search_two(3, services, line, [Sla(latency_ms=100), Sla(latency_ms=25)])
    lenient = search_two(3, services, line, [Sla(latency_ms=100), Sla(latency_ms=100)])
    assert strict.estimate < 0.5 * lenient.estimate


def test_a_background_tenant_keeps_its_rate_while_the_other_rises():
    line = LoadLine((60.0, 0.0), (0.0, 169.0))
    peak = search_two(4, [deterministic(0.005)] * 2, line, [MM1_SLA] * 2)
    on_the_line = [window for window in peak.windows if window.on_the_line]
    assert {window.tenants[0].offered_rps for window in on_the_line} == {60.0}
    assert 60 + 169 * peak.estimate == pytest.approx(MD1_LIMIT_RPS, rel=0.08)


def test_a_tenant_that_cannot_hold_its_rate_is_named_with_its_numbers():
    line = LoadLine((230.0, 0.0), (0.0, 169.0))  # the server carries at most 200 requests/s
    peak = search_two(5, [deterministic(0.005)] * 2, line, [MM1_SLA] * 2)
    assert peak.outcome is Outcome.INFEASIBLE and np.isnan(peak.certified)
    assert "for first with the background load of 230.0 requests/s, the server" in peak.reason


def test_each_tenant_is_loaded_alone_at_its_shared_rate():
    line = LoadLine((0.0, 0.0), (80.0, 80.0))
    peak = search_two(6, [deterministic(0.005)] * 2, line, [MM1_SLA] * 2)
    shared = peak.windows[peak.certified_window]
    alone = [window for window in peak.windows if window.phase is Phase.ALONE]
    assert len(alone) == 2
    for i, window in enumerate(alone):
        assert window.tenants[i].offered_rps == shared.tenants[i].offered_rps
        assert window.tenants[1 - i].offered_rps == 0
        assert window.tenants[i].p95_ms < shared.tenants[i].p95_ms


def begun(seed: int, service, sla: Sla = MM1_SLA, **server) -> _Search:
    """Return a search without windows."""
    rng = np.random.default_rng(seed)
    system = SimulatedServer([service], rng, **server)
    queue = VirtualQueue((np.full(40, 0.005),), (0.045,))
    model = LineModel(ONE, (sla,), system.arrivals, queue)
    return _Search(system, model, QUICK, ("tenant",), 120, [np.full(40, 5.0)], rng, lambda *_: None)


def confirmed_at_the_limit(seed: int) -> Verdict:
    return begun(seed, exponential(0.005))._measure(Phase.CERTIFY, MM1_LIMIT_RPS).verdict


def test_a_window_at_the_limit_passes_as_seldom_as_the_confidence_says():
    passed = [confirmed_at_the_limit(seed) is Verdict.PASS for seed in range(200)]
    share = 1 - QUICK.confidence
    assert np.mean(passed) <= share + 2 * np.sqrt(share * (1 - share) / len(passed))


def test_several_looks_share_the_confidence(monkeypatch):
    asked = []

    def judged(*args, confidence, **more):
        asked.append(confidence)
        return judge(*args, confidence=confidence, **more)

    monkeypatch.setattr("perseus.peak.window_runner.judge", judged)
    found = begun(2, exponential(0.005))
    for phase, looks in (
        (Phase.BRACKET, QUICK.coarse.looks),
        (Phase.NEAR_LIMIT, QUICK.near_limit.looks),
    ):
        asked.clear()
        found._measure(phase, MM1_LIMIT_RPS)
        assert set(asked) == {1 - (1 - QUICK.confidence) / looks}
    assert QUICK.coarse.looks > 1


def test_windows_far_above_where_they_lead_still_give_an_interval(monkeypatch):
    on_the_way = begun(8, deterministic(0.005))
    on_the_way._measure(Phase.NEAR_LIMIT, 165.0)
    estimate, posterior = on_the_way.estimate(165.0 / 1.3)
    assert 100 < estimate < 250 and np.ptp(posterior) > 0.01 * estimate

    def lower(model, tenant, windows, draws):
        return Limit(np.full(1 + draws.count, 0.7 * windows[0].scale), observed=False)

    monkeypatch.setattr("perseus.peak.line_limit.tenant_limit", lower)
    assert on_the_way.estimate(165.0 / 1.3)[0] == pytest.approx(0.7 * 165)


def test_a_search_of_invalid_windows_has_no_interval():
    late = begun(9, deterministic(0.005), send_lag_s=0.02)
    late._measure(Phase.NEAR_LIMIT, 165.0)
    estimate, posterior = late.estimate(160.0)
    assert estimate == 160.0 and len(posterior) == 0


def test_two_models_on_one_core_are_estimated_as_surely_as_said():
    """Each model has its own instance and its own queue, and the busy models share the core."""
    limit = 125.6  # from a long simulation
    found = [on_one_core(seed) for seed in range(8)]
    estimates, certified, lows, highs = np.array(found).T
    assert np.mean(certified > limit) <= 1 - QUICK.confidence
    assert np.mean((lows <= limit) & (limit <= highs)) >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / 8)
    # Eight intervals may cover the limit by chance, so the test also bounds the errors.
    standardised = (estimates - limit) / ((highs - lows) / 3.92)
    assert np.mean(standardised**2) <= 1 + 2 * np.sqrt(2 / 8)
    assert np.mean(estimates) == pytest.approx(limit, rel=0.03)
    assert np.std(estimates) < 0.05 * limit


def on_one_core(seed: int) -> tuple[float, ...]:
    rng = np.random.default_rng(seed)
    services = [deterministic(0.004), deterministic(0.012)]
    peak = find_peak(
        SimulatedServer(services, rng, instances=True),
        LoadLine((0.0, 0.0), (0.75, 0.25)),
        [Sla(latency_ms=40), Sla(latency_ms=80)],
        QUICK,
        start=80,
        unloaded_ms=[1000 * service(rng, 40) for service in services],
        names=["first", "second"],
        rng=rng,
    )
    return peak.estimate, peak.certified, *np.percentile(peak.posterior, [2.5, 97.5])


@pytest.mark.parametrize(
    ("of_model", "combined"),
    [(0.95, 0.9702), (1.1, 1.0579), (0.4, 1.0), (0.001, 1.0)],
    ids=["near", "within two standard deviations", "not saturated by the probes", "full server"],
)
def test_a_simulated_limit_far_from_the_windows_hardly_counts(monkeypatch, of_model, combined):
    """The limit from the windows is 1, with a standard deviation of 6 %.

    If four requests in flight do not saturate the server, the simulated limit is far too low. If
    background load nearly fills the server, the simulated limit is near 0.
    """
    monkeypatch.setattr(_Search, "shared_model_scale", of_model)
    posterior = np.exp([-0.06, 0.06])
    found = begun(1, deterministic(0.005)).with_model(1.0, posterior)
    assert found == pytest.approx(combined, abs=1e-4 if combined != 1 else 0.02)


def test_a_search_is_reproducible():
    first, second = search(7), search(7)
    assert first.estimate == second.estimate and len(first.windows) == len(second.windows)


def test_a_limit_far_above_the_first_load_is_found():
    """The first load follows from the latency without load, and a remote server has a long one."""
    peak = search(1, deterministic(0.005), start=MD1_LIMIT_RPS / 1000)
    assert peak.outcome is Outcome.OK
    assert peak.estimate == pytest.approx(MD1_LIMIT_RPS, rel=0.1)


def test_the_loads_up_to_thirty_times_the_first_one_rise_by_half():
    peak = search(1, deterministic(0.005), start=MD1_LIMIT_RPS / 19)
    loads = [window.scale for window in peak.windows if window.phase is Phase.BRACKET]
    assert np.diff(np.log(loads)) == pytest.approx(np.full(8, np.log(1.5)))


def test_a_search_is_bounded_when_the_server_never_fails():
    settings = replace(QUICK, max_windows=6)
    peak = search(1, deterministic(1e-9), settings=settings)
    most = {Phase.WARM_UP: 2, Phase.BRACKET: 6, Phase.PROBE: 4, Phase.CERTIFY: 1}
    assert all(sum(w.phase is phase for w in peak.windows) <= n for phase, n in most.items())
    assert {window.phase for window in peak.windows} == set(most)
    # An estimate without its uncertainty is useless, so the search reports no estimate.
    assert peak.outcome is Outcome.UNCERTIFIED and len(peak.posterior) == 0
    highest = max(window.scale for window in peak.windows if window.on_the_line)
    assert f"the highest tested load (tenant at {highest:.1f} requests/s)" in peak.reason
    assert peak.certified == highest


def test_invalid_windows_do_not_use_up_a_search():
    late = begun(9, deterministic(0.005), send_lag_s=0.02)
    late.settings = replace(QUICK, max_windows=2)
    assert late._measure(Phase.BRACKET, 165.0).verdict is Verdict.INVALID
    assert len(late.on_the_line) == ATTEMPTS and late._may_go_on()
    late._measure(Phase.BRACKET, 110.0)
    assert not late._may_go_on()


def overwhelmed_above(rate_rps: float):
    """Return a server whose service times are 100 times as long in windows above `rate_rps`."""
    return partial(_overwhelmed_above, rate_rps)


def _overwhelmed_above(rate_rps: float, arrival, work):
    busy = len(arrival) > rate_rps * arrival[-1]
    return departures_s(arrival, 100 * work if busy else work)


def test_a_cliff_is_said():
    discipline = overwhelmed_above(90)
    found = searches(5, deterministic(0.005), discipline=discipline)
    assert all(
        "the latency of tenant at the percentile of its SLA rises from" in peak.cliff
        for peak in found
    )
    assert not any(peak.certified > 90 for peak in found)
    assert np.mean([peak.outcome is Outcome.OK for peak in found]) >= 0.9
    assert all(peak.estimate <= 100 for peak in found)
    ends = [np.percentile(peak.posterior, [2.5, 97.5]) for peak in found]
    assert np.mean([low <= 90 <= high for low, high in ends]) >= 0.9


@pytest.mark.parametrize(
    "seen", [{"send_lag_p99_ms": 5.0}, {"other_cpu_share": 0.3}], ids=["client", "other processes"]
)
def test_a_leap_that_others_than_the_server_may_have_made_is_no_cliff(seen):
    """A window with a tolerated send lag or load of other processes counts for the limit, but is no
    evidence of a cliff."""
    peak = search(0, deterministic(0.005), discipline=overwhelmed_above(90))
    line = [window for window in peak.windows if window.on_the_line]
    invalid = [
        replace(w, tenants=(replace(w.tenants[0], **seen),)) if w.verdict is Verdict.FAIL else w
        for w in line
    ]
    assert cliff(line, ["tenant"]) and not cliff(invalid, ["tenant"])


def test_a_latency_that_rises_with_the_load_is_no_cliff():
    assert not any(peak.cliff for peak in found_on("M/M/1"))


def test_every_fresh_window_must_pass_when_several_are_asked_for():
    settings = replace(QUICK, certify_windows=3)
    peak = search(2, settings=settings)
    last = peak.windows[peak.certified_window - 2 : peak.certified_window + 1]
    assert [w.phase for w in last] == [Phase.CERTIFY] * 3
    assert {(w.scale, str(w.verdict)) for w in last} == {(peak.certified, "pass")}


def test_an_idle_tenant_changes_nothing():
    line = LoadLine((0.0, 0.0), (169.0, 0.0))
    for seed in range(3):
        peak = search_two(seed, [deterministic(0.005)] * 2, line, [MM1_SLA] * 2, start=0.8)
        assert peak.estimate * 169 == pytest.approx(MD1_LIMIT_RPS, rel=0.05)


def test_a_speed_that_changes_by_half_during_the_search_is_told_beside_the_estimate():
    found = searches(6, deterministic(0.005), slowness=drifting(0.02))
    assert all(peak.outcome is Outcome.UNSTEADY for peak in found)
    assert all("before the search" in peak.reason and peak.estimate > 0 for peak in found)


def covers(peak: Peak, limit: float) -> bool:
    low, high = np.percentile(peak.posterior, [2.5, 97.5])
    return bool(low <= limit <= high)


def test_a_host_that_wanders_widens_the_interval_and_voids_nothing():
    """The speed of the host varies by 10 % within half a minute, as in clouds.

    The truth is the limit at the average speed.
    """
    found = searches(10, deterministic(0.005), slowness=wandering(0.1, period_s=31))
    assert all(peak.outcome in (Outcome.OK, Outcome.UNCERTIFIED) for peak in found)
    assert sum(covers(peak, MD1_LIMIT_RPS) for peak in found) >= 9
    calm = found_on("M/D/1")
    width, calm_width = (np.mean([np.std(p.posterior) for p in each]) for each in (found, calm))
    assert width > 1.5 * calm_width


@dataclass
class Burst(SimulatedServer):
    """A server whose first window on the load line is slow, since another process uses its core."""

    windows: int = 0

    def offer(self, rates_rps, duration_s):
        self.slowness = drifting(0.35, until_s=1) if self.windows == 0 else even
        self.windows += 1
        return super().offer(rates_rps, duration_s)


def test_a_window_that_met_a_burst_does_not_decide():
    """Another process slows the first window at 140 requests/s, far below the limit. Later windows
    correct the estimate."""
    found = searches(8, deterministic(0.005), kind=Burst, start=140)
    for peak in found:
        assert not next(w for w in peak.windows if w.on_the_line).passes_roughly
    assert sum(covers(peak, MD1_LIMIT_RPS) for peak in found) >= 7


HALVED = np.repeat(np.tile([1.0, 2.0, 1.0, 1.0, 2.0], 60), np.tile([37, 9, 61, 48, 16], 60))
"""Factor on the service times in each 0.1 s. Other processes repeatedly use half of the host: for
0.9 s, then for 1.6 s."""


def test_windows_in_which_something_took_half_of_the_server_are_tried_again():
    found = searches(8, deterministic(0.005), slowness=as_recorded(0.1, HALVED))
    assert sum(covers(peak, MD1_LIMIT_RPS) for peak in found) >= 7
    windows = [window for peak in found for window in peak.windows]
    slow = [window for window in windows if window.tenants[0].slowed > 1.5]
    assert len(slow) > 8 and all(w.tenants[0].slowed == pytest.approx(2, rel=0.3) for w in slow)
    invalid = [window for window in slow if window.verdict is Verdict.INVALID]
    assert len(invalid) > 8 and all(window.tenants[0].disturbed for window in invalid)
    certifying = [window for window in windows if window.phase is Phase.CERTIFY]
    assert Verdict.INVALID not in {window.verdict for window in certifying}
    assert {window.tenants[0].slowed for window in certifying} == {1.0}


def thrashing(arrival, work):
    """Serve requests first come, first served.

    If a request waits for more than 0.1 s, its service time doubles.
    """
    done, free_s = np.empty(len(arrival)), 0.0
    for i, arrived_s in enumerate(arrival):
        begun_s = max(free_s, arrived_s)
        done[i] = free_s = begun_s + work[i] * (2 if begun_s - arrived_s > 0.1 else 1)
    return done


@dataclass
class Thrashing(SimulatedServer):
    """A server with the discipline `thrashing` in an open loop, but not in a closed loop."""

    def offer(self, rates_rps, duration_s):
        self.discipline = thrashing
        return super().offer(rates_rps, duration_s)

    def offer_closed(self, in_flight, duration_s):
        self.discipline = departures_s
        return super().offer_closed(in_flight, duration_s)


def test_a_server_that_is_always_slower_under_overload_is_not_called_disturbed():
    found = searches(6, deterministic(0.005), kind=Thrashing, start=160)
    assert {peak.outcome for peak in found} == {Outcome.OK}
    for peak in found:
        assert peak.certified < MD1_LIMIT_RPS and 0.8 < peak.estimate / MD1_LIMIT_RPS < 1.05
    overloaded = [w for peak in found for w in peak.windows if w.tenants[0].slowed > 1.5]
    assert {w.verdict for w in overloaded} == {Verdict.INVALID, Verdict.FAIL}


def test_tenants_with_the_same_limit_do_not_lower_it():
    found = [of_twins(seed) for seed in range(6)]
    estimates, lows, highs = np.array(found).T
    assert np.mean(estimates) == pytest.approx(MD1_LIMIT_RPS, rel=0.01)
    assert np.sum((lows <= MD1_LIMIT_RPS) & (highs >= MD1_LIMIT_RPS)) >= 6


def of_twins(seed: int) -> tuple[float, ...]:
    line = LoadLine((0.0, 0.0), (0.5, 0.5))
    peak = search_two(seed, [deterministic(0.005)] * 2, line, [MM1_SLA] * 2, start=120)
    return peak.estimate, *np.percentile(peak.posterior, [2.5, 97.5])


def test_a_slow_model_is_searched_in_windows_that_have_requests():
    """The service time is 0.6 s: at 1/s, 8 % of windows of 2.5 s contain no request.

    The limit is from a long simulation.
    """
    found = searches(4, deterministic(0.6), sla=Sla(latency_ms=4000), start=0.8)
    for peak in found:
        assert min(w.tenants[0].requests for w in peak.windows if w.on_the_line) > 3
        assert peak.estimate == pytest.approx(1.284, rel=0.1)


def test_a_window_waits_for_more_requests_if_late_requests_come_in_clusters():
    """Near the limit of M/D/4, dozens of requests in a row are late. In 16 s, too few clusters
    of late requests would occur for a certified rate."""
    most_s, settle_and_grace_s = QUICK.certify.max_s, 1.0 + 0.2
    counted_s = [
        window.elapsed_s - settle_and_grace_s
        for peak in found_on("M/D/4")
        for window in peak.windows
        if window.phase is Phase.CERTIFY
    ]
    assert max(counted_s) > 1.1 * most_s
    assert max(counted_s) <= CLUSTERED * most_s + 1e-9


BEFORE_S = 1.1  # settling time, and time for the responses to the last counted requests


def test_a_window_far_below_the_limit_ends_at_the_first_verdict():
    window = begun(0, deterministic(0.005))._measure(Phase.CERTIFY, 0.6 * MD1_LIMIT_RPS)
    assert window.verdict is Verdict.PASS
    assert window.elapsed_s == pytest.approx(BEFORE_S + QUICK.certify.max_s / 2)


def test_only_a_window_that_may_still_pass_waits_for_more_requests():
    """At the limit, too many requests of some windows are late. More requests do not help such a
    window, so it ends after its planned time."""
    planned_s = BEFORE_S + QUICK.certify.max_s
    windows = [
        begun(seed, deterministic(0.005))._measure(Phase.CERTIFY, MD1_LIMIT_RPS)
        for seed in range(12)
    ]
    undecided = [window for window in windows if window.verdict is Verdict.UNDECIDED]
    hopeless = [window.elapsed_s for window in undecided if not window.passes_roughly]
    hopeful = [window.elapsed_s for window in undecided if window.passes_roughly]
    assert hopeless and min(hopeless) == pytest.approx(planned_s)
    assert hopeful and max(hopeful) > 1.1 * planned_s


def test_a_window_that_waits_for_more_requests_passes_only_with_enough_requests():
    """On M/D/4, late requests come in clusters, so many windows wait. If each verdict of the
    additional time counted, windows at the limit would pass too often."""
    rate_rps, sla = 165, Sla(latency_ms=100)
    planned_s, longest_s = (1.2 + factor * QUICK.certify.max_s for factor in (1, CLUSTERED))
    needed = ENOUGH * stats.fewest_independent(0.05, 1 - (1 - QUICK.confidence) / 2)
    searches_begun = [
        begun(seed, deterministic(0.02), sla, discipline=workers(4)) for seed in range(40)
    ]
    windows = [each._measure(Phase.CERTIFY, rate_rps) for each in searches_begun]
    waited = [each for each in windows if 1.01 * planned_s < each.elapsed_s < 0.99 * longest_s]
    passed = [each.tenants[0] for each in waited if each.verdict is Verdict.PASS]
    assert passed and min(tenant.effective_requests for tenant in passed) >= needed


def test_a_slow_model_is_certified_in_windows_that_wait_for_its_requests():
    """An M/M/1 server with a service time of 100 ms keeps an SLA of 1 s (p95) up to 7 requests/s.

    A pass on the p95 needs 130 requests, and at 7 requests/s about 112 requests arrive in 16 s.
    """
    found = searches(6, exponential(0.1), sla=Sla(latency_ms=1000), start=6)
    certified = [peak.certified for peak in found if peak.outcome is Outcome.OK]
    assert len(certified) >= 4 and max(certified) <= 7.0


def test_a_slow_model_whose_work_scatters_is_not_taken_for_a_server_that_changed_its_speed():
    """A saturation probe of 20 s has about ten responses, too few to detect a change of speed."""
    found = searches(6, exponential(2.0), sla=Sla(latency_ms=20000), start=0.3)
    assert {peak.outcome for peak in found} == {Outcome.UNCERTIFIED}


@dataclass
class Others(SimulatedServer):
    """A server beside other processes.

    From open-loop window `come_at` + 1, the other processes use the share `other_cpu_share` of the
    server's cores. If `leave` is true, the other processes end when the search waits for an idle
    host.
    """

    other_cpu_share: float = 0.0
    come_at: int = 0
    leave: bool = False
    windows: int = 0

    @contextmanager
    def offer(self, rates_rps, duration_s):
        self.windows += 1
        share = self.other_cpu_share if self.windows > self.come_at else 0.0
        with super().offer(rates_rps, duration_s) as load:
            yield BesideOthers(load, share)

    def wait_until_idle(self, other_load):
        if self.leave:
            self.other_cpu_share = 0.0
        return self.other_cpu_share <= other_load


@dataclass
class BesideOthers:
    load: SimulatedLoad
    other_cpu_share: float

    def until(self, elapsed_s):
        seen = self.load.until(elapsed_s)
        return replace(seen, other_cpu_share=self.other_cpu_share, other_process="make (process 7)")


def test_other_processes_that_never_rest_are_put_up_with_to_a_degree():
    put_up_with = search(1, deterministic(0.005), kind=Others, other_cpu_share=0.2)
    first = [window.verdict for window in put_up_with.windows if window.on_the_line][:3]
    assert first[:2] == [Verdict.INVALID] * 2 and first[2] is not Verdict.INVALID
    assert put_up_with.estimate == pytest.approx(MD1_LIMIT_RPS, rel=0.05)
    used = "other processes used 20% of the server's cores, among them make (process 7)"
    assert put_up_with.other_load == used
    assert search(1, deterministic(0.005), kind=Others, other_cpu_share=0.05).other_load == ""
    too_much = search(1, deterministic(0.005), kind=Others, other_cpu_share=0.6)
    assert np.isnan(too_much.certified)
    text = "other processes used 60% of the server's cores, among them make (process 7)"
    assert (too_much.outcome, too_much.reason) == (Outcome.DISTURBED, text)


def test_others_who_never_leave_end_a_search_at_once():
    found = search(1, deterministic(0.005), kind=Others, other_cpu_share=0.6)
    assert len([window for window in found.windows if window.on_the_line]) == 3
    later = search(1, deterministic(0.005), kind=Others, other_cpu_share=0.6, come_at=2)
    windows = [window for window in later.windows if window.on_the_line]
    assert later.outcome is Outcome.DISTURBED and len(windows) <= 8
    # no rate is tested twice
    assert len({window.scale for window in windows[5:]}) == len(windows[5:])


@pytest.mark.parametrize("come_at", [4, 5])
def test_others_who_come_late_leave_an_estimate_that_nothing_certifies(come_at):
    found = search(1, deterministic(0.005), kind=Others, other_cpu_share=0.6, come_at=come_at)
    assert found.outcome is Outcome.DISTURBED and "other processes used 60%" in found.reason
    assert found.reason.startswith("the limit was estimated")
    assert found_limit(found.outcome, found.estimate, found.posterior)
    confirming = [window for window in found.windows if window.phase is Phase.CERTIFY]
    assert len({window.scale for window in confirming}) == 1


@pytest.mark.parametrize("come_at", [0, 1, 3])
def test_others_who_leave_when_they_are_waited_for_cost_no_answer(come_at):
    kind = {"kind": Others, "other_cpu_share": 0.7, "leave": True, "come_at": come_at}
    found = search(1, deterministic(0.005), **kind)
    invalid = [window for window in found.windows if window.verdict is Verdict.INVALID]
    assert len(invalid) == 3 and len({window.scale for window in invalid}) == 1
    assert found.outcome is Outcome.OK
    after = found.windows[found.windows.index(invalid[-1]) + 1 :]
    assert after[0].phase is Phase.PROBE  # the earlier probes ran beside other processes
    assert len(found.speeds_rps[0]) == sum(window.phase is Phase.PROBE for window in after)
    assert found.estimate == pytest.approx(MD1_LIMIT_RPS, rel=0.05)


@pytest.mark.parametrize(
    ("service", "per_s"), [(deterministic(0.005), 0.1), (exponential(0.005), 0.2)]
)
def test_a_server_that_never_becomes_steady_is_told_so_at_once(service, per_s):
    found = searches(10, service, slowness=drifting(per_s))
    told = [
        peak.outcome is Outcome.UNSTEADY
        and "does not become steady under load (its lower quartile changed" in peak.reason
        and [window.phase for window in peak.windows] == [Phase.WARM_UP] * 2
        for peak in found
    ]
    assert np.mean(told) >= 0.9


def test_what_passes_while_the_server_warms_up_does_not_end_the_search():
    found = searches(6, deterministic(0.005), slowness=drifting(0.05, until_s=18))
    again = [peak for peak in found if peak.windows[1].phase is Phase.WARM_UP]
    assert len(again) >= 3
    assert all(peak.outcome is Outcome.OK for peak in again)


def test_a_steady_server_is_seldom_taken_for_an_unsteady_one(peaks):
    assert np.mean([peak.outcome is Outcome.UNSTEADY for peak in peaks[2]]) <= 0.03


def test_the_worst_tenant_decides_a_window():
    """If one tenant fails, the window fails, even if the verdict on another tenant is `invalid`."""
    window = search(1).windows[0]
    (tenant,) = window.tenants
    verdicts = [Verdict.PASS, Verdict.UNDECIDED, Verdict.INVALID, Verdict.FAIL]
    for i, worst in enumerate(verdicts):
        mixed = tuple(replace(tenant, verdict=verdict) for verdict in verdicts[: i + 1])
        assert replace(window, tenants=mixed).verdict is worst


def test_where_no_window_is_valid_the_search_still_says_where_it_stands():
    late = begun(9, deterministic(0.005), send_lag_s=0.02)
    assert 80 < late.near_limit_windows(80.0, 320.0) < 320
