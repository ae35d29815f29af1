"""Tests of attainment over time, recovery after bursts and schedule fidelity, with known truths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perseus.peak.attainment import (
    Attainment,
    Minute,
    ReplayVerdict,
    attained,
    late_from_send,
    verdict,
)
from perseus.peak.fidelity import fidelity
from perseus.peak.lindley import departures_s
from perseus.peak.outcome import Outcome
from perseus.peak.recovery import Burst, bursts, most_in_flight, recoveries
from perseus.peak.system import Observation
from perseus.peak.verdict import ON_BUSY_HOST, judge
from perseus.study.sla import Sla
from perseus.traffic.requests import Requests, Status

SLA = Sla(percentile=95, latency_ms=500)
START_NS = 7 * 10**9


def ns(seconds):
    return START_NS + np.round(np.asarray(seconds, float) * 1e9).astype(np.int64)


def requests(intended_s, done_s, sent_s=None):
    """Return requests that are all answered, except those with `done_s` = infinity."""
    done_s = np.asarray(done_s, float)
    pending = np.isinf(done_s)
    return Requests(
        ns(intended_s),
        ns(intended_s if sent_s is None else sent_s),
        np.where(pending, 0, ns(np.where(pending, 0, done_s))),
        np.where(pending, Status.PENDING, Status.OK).astype(np.uint8),
    )


def with_burst(seconds, *at_s):
    """Return 2 requests/s, 100 requests/s in the seconds `at_s`, and service times of 100 ms."""
    base = np.arange(0, seconds, 0.5)
    quiet = base[~np.isin(base.astype(int), at_s)]
    crowds = [at + np.arange(100) / 100 for at in at_s]
    arrival_s = np.sort(np.concatenate([quiet, *crowds]))
    return requests(arrival_s, departures_s(arrival_s, np.full(len(arrival_s), 0.1)))


def by_second(of, seconds, elapsed_s=None):
    seen = Observation(START_NS, elapsed_s or seconds + 30.0, (of,), (0.05,))
    return Attainment.of(seen, 0, SLA, seconds)


# The expected values for one burst: 100 requests arrive in second 10, and the server completes one
# request every 100 ms, until second 20. The first request takes 100 ms, and each later request of
# the burst takes 90 ms longer than the request before it. Therefore only the first five requests
# keep the SLA of 500 ms. After the burst, the backlog falls by 0.8 s per second. The requests of
# second 11 take 9.1 and 8.7 s, the requests of second 21 take 1.1 and 0.7 s, and the requests of
# second 22 take 0.3 and 0.1 s.


def test_attainment_is_counted_by_the_second_in_which_requests_were_intended():
    found = by_second(with_burst(40, 10), 40)
    assert found.requests.tolist() == [2] * 10 + [100] + [2] * 29
    assert found.within.tolist() == [2] * 10 + [5] + [0] * 11 + [2] * 18
    assert found.back(SLA).tolist() == [True] * 10 + [False] * 12 + [True] * 18


@pytest.mark.parametrize("percentile", [50, 71, 80, 90, 95, 99, 99.9])
def test_a_share_that_is_exactly_what_the_sla_allows_keeps_it(percentile):
    sla = Sla(percentile=percentile, latency_ms=500)
    late = round(1000 - 10 * percentile)
    found = Attainment(np.array([0, 1000, 1000]), np.array([0, 1000 - late, 999 - late]))
    assert found.back(sla).tolist() == [True, True, False]
    assert late / 1000 <= sla.allowed < (late + 1) / 1000


def test_a_request_that_is_sent_late_belongs_to_the_second_in_which_it_was_due():
    found = by_second(requests([0.5, 1.5], [1.9, 1.8], sent_s=[1.7, 1.5]), 3)
    assert (found.requests.tolist(), found.within.tolist()) == ([1, 1, 0], [0, 1, 0])


def test_recovery_lasts_until_the_backlog_is_gone_and_a_second_kept_the_sla():
    of = with_burst(40, 10)
    (burst,) = recoveries(of, START_NS, by_second(of, 40).back(SLA))
    assert burst == Burst(start_s=10, end_s=11, requests=100, recovery_s=11.0)


def test_a_backlog_that_outlasts_the_sla_is_no_recovery_yet():
    """The server may serve the burst last, so that all other requests keep their SLA."""
    of = with_burst(40, 10)
    (burst,) = recoveries(of, START_NS, np.ones(40, bool))
    # the last request of the burst is answered in second 20
    assert burst.recovery_s == pytest.approx(9.0)


def test_a_burst_that_does_no_harm_takes_no_recovery():
    arrival_s = np.sort(np.append(np.arange(0, 40, 0.5), 10 + np.arange(1, 31) / 31))
    of = requests(arrival_s, arrival_s + 0.02)
    (burst,) = recoveries(of, START_NS, by_second(of, 40).back(SLA))
    assert (burst.start_s, burst.end_s, burst.requests) == (10, 11, 32)
    assert burst.recovery_s == 0


def test_a_burst_before_recovery_makes_one_of_both():
    of = with_burst(80, 10, 15)
    (burst,) = recoveries(of, START_NS, by_second(of, 80).back(SLA))
    assert (burst.start_s, burst.end_s) == (10, 16)
    # From 10 s to 16 s, 100 + 8 + 100 requests arrive. The server completes the last of these
    # requests at 30.8 s, so the backlog at 16 s is 14.8 s. The backlog falls by 0.8 s per second. A
    # request keeps the SLA at a backlog of at most 0.4 s: after (14.8 - 0.4) / 0.8 = 18 s.
    assert burst.requests == 208 and burst.recovery_s == pytest.approx(18.0)


def test_bursts_after_recovery_are_told_apart():
    of = with_burst(80, 10, 40)
    found = recoveries(of, START_NS, by_second(of, 80).back(SLA))
    assert [(each.start_s, each.recovery_s) for each in found] == [(10, 11.0), (40, 11.0)]


def test_a_recovery_that_is_not_over_at_the_end_is_infinite():
    of = with_burst(20, 10)  # the recovery takes 11 seconds
    (burst,) = recoveries(of, START_NS, by_second(of, 20).back(SLA))
    assert burst.recovery_s == np.inf
    crowd_s = np.sort([*np.arange(0, 20, 0.5), *(10 + np.arange(1, 40) / 40)])
    lost = requests(crowd_s, np.full(len(crowd_s), np.inf))
    assert recoveries(lost, START_NS, np.ones(20, bool))[0].recovery_s == np.inf


def test_after_a_burst_at_the_very_end_the_backlog_alone_tells():
    of = with_burst(11, 10)
    (burst,) = recoveries(of, START_NS, by_second(of, 11).back(SLA))
    assert burst == Burst(10, 11, 100, pytest.approx(9.0))


def test_a_burst_is_more_than_chance_and_well_above_the_mean():
    """The mean is 21 arrivals per second. At this mean, 0.1 % of Poisson seconds have more than 36
    arrivals, and 1.5 times the mean is 32 arrivals."""
    counts = np.full(100, 20)
    counts[[10, 11, 12, 50, 99]] = [45, 60, 45, 34, 40]
    assert bursts(counts) == [(10, 13), (99, 100)]
    assert bursts(np.array([200, 200, 290, 200])) == []  # significant, but only 1.3 times the mean
    assert bursts(np.array([400, 100, 100, 100, 100])) == [(0, 1)]
    assert bursts(np.zeros(10, int)) == []


def test_poisson_arrivals_have_hardly_any_bursts():
    counts = np.random.default_rng(1).poisson(20.0, 20_000)
    assert sum(end - start for start, end in bursts(counts)) / 20_000 < 0.002


def test_most_in_flight_counts_what_is_intended_and_not_ended():
    assert most_in_flight(with_burst(40, 10)) == 91  # 100 requests arrive and 9 leave
    of = requests([0, 0.1, 0.2, 0.3], [0.25, np.inf, 0.35, 0.4])
    assert most_in_flight(of) == 3
    unsent = replace(of, status=np.array([1, 5, 1, 1], np.uint8))
    assert most_in_flight(unsent) == 2
    assert most_in_flight(requests([], [])) == 0


def test_the_worst_minute_may_begin_at_any_second():
    found = by_second(with_burst(100, 10), 100)
    assert found.worst_minute() == Minute(0, 218, 101)  # the first minute that contains the burst
    late = by_second(with_burst(100, 85), 100)
    assert late.worst_minute() == Minute(37, 218, 101)
    assert by_second(with_burst(40, 10), 40).worst_minute() == Minute(0, 178, 61)


def test_a_minute_without_requests_is_not_the_worst():
    times = np.array([0.5, 200.5])
    found = by_second(requests(times, np.add(times, [0.1, 1.0])), 240)
    assert found.worst_minute() == Minute(141, 1, 0)
    assert by_second(requests([], []), 10).worst_minute() == Minute(0, 0, 0)


def test_the_share_attained_is_exact_and_its_interval_holds_it():
    of = with_burst(40, 10)
    share = attained(of, SLA, ns(70))
    assert share.value == pytest.approx(61 / 178)
    assert 0 <= share.low < share.value < share.high <= 1


def test_what_was_not_answered_is_late_and_what_was_not_sent_is_nothing():
    of = requests(np.arange(10) / 10, np.arange(10) / 10 + 0.1)
    status = np.array([1, 1, 1, 1, 1, 1, 0, 2, 4, 5], np.uint8)
    found = by_second(replace(of, status=status), 1, elapsed_s=20.0)
    assert (found.requests.tolist(), found.within.tolist()) == ([9], [6])
    assert attained(replace(of, status=status), SLA, ns(20)).value == pytest.approx(6 / 9)


# Verdicts


def seen(lag_s=0.0, late=0.0, client_cpu=0.05, other_cpu_share=0.0, other_gpu_share=None):
    """Return the verdict of a thousand requests, sent late by `lag_s`.

    The share `late` of the requests misses the SLA.
    """
    intended_s = np.arange(1000) / 50
    sent_s = intended_s + lag_s
    slow = np.arange(1000) % 100 < 100 * late
    done_s = sent_s + np.where(slow, 1.0, 0.3)
    of = requests(intended_s, done_s, sent_s)
    window = Observation(
        START_NS, 25.0, (of,), (client_cpu,), other_cpu_share, other_gpu_share=other_gpu_share
    )
    found = judge(
        window,
        0,
        SLA,
        rate_rps=50,
        settle_s=0.0,
        grace_s=5.0,
        confidence=0.95,
        tolerance=ON_BUSY_HOST,
    )
    return verdict(found, SLA, late_from_send(of, SLA, window.now_ns))


def test_a_verdict_is_on_what_happened():
    """A replay misses the SLA if the observed share of late requests exceeds the allowed share."""
    assert seen() == (ReplayVerdict.OK, "")
    assert seen(late=0.05) == (ReplayVerdict.OK, "")
    assert seen(late=0.06) == (
        ReplayVerdict.SLA_MISSED,
        "94.0% of the requests took at most 500 ms",
    )


def test_late_sends_are_not_the_servers():
    assert seen(lag_s=0.05)[0] is ReplayVerdict.OK  # the SLA holds although the client sends late
    # the SLA would also fail without the send lag
    assert seen(lag_s=0.05, late=0.06)[0] is ReplayVerdict.SLA_MISSED
    found, reason = seen(lag_s=0.25)
    assert found is ReplayVerdict.DISTURBED and "the host delayed the client" in reason
    found, reason = seen(lag_s=0.25, client_cpu=0.5)
    assert found is ReplayVerdict.CLIENT_LIMITED and "send lag p99" in reason


def test_an_sla_that_the_actual_sends_would_have_kept_is_missed_by_the_client():
    intended_s = np.arange(1000) / 50
    sent_s = intended_s + 0.09  # within 20 % of the SLA
    of = requests(intended_s, sent_s + 0.45, sent_s)
    window = Observation(START_NS, 25.0, (of,), (0.05,))
    assert late_from_send(of, SLA, window.now_ns) == 0
    options = {"rate_rps": 50, "settle_s": 0.0, "grace_s": 5.0, "confidence": 0.95}
    found = judge(window, 0, SLA, **options, tolerance=ON_BUSY_HOST)
    assert found.exceedance == 1
    assert verdict(found, SLA, 0.0) == (
        ReplayVerdict.CLIENT_LIMITED,
        "0.0% of the requests took at most 500 ms, but this share is 100.0% if latency counts"
        " from the actual send time",
    )


def test_what_others_used_of_the_server_is_not_its_fault():
    assert seen(other_cpu_share=0.3)[0] is ReplayVerdict.OK
    found, reason = seen(late=0.06, other_cpu_share=0.3)
    assert found is ReplayVerdict.DISTURBED and reason.endswith("30% of the server's cores")
    assert seen(other_cpu_share=0.6)[0] is ReplayVerdict.DISTURBED
    assert seen(other_gpu_share=0.3)[0] is ReplayVerdict.OK
    found, reason = seen(late=0.06, other_gpu_share=0.3)
    assert found is ReplayVerdict.DISTURBED
    used = "other processes used 30% of the server's GPU"
    assert reason == f"94.0% of the requests took at most 500 ms, while {used}"


def test_a_missed_sla_is_an_answer_of_the_cell():
    assert {each: each.outcome for each in ReplayVerdict} == {
        ReplayVerdict.OK: Outcome.OK,
        ReplayVerdict.SLA_MISSED: Outcome.OK,
        ReplayVerdict.CLIENT_LIMITED: Outcome.CLIENT_LIMITED,
        ReplayVerdict.DISTURBED: Outcome.DISTURBED,
    }


# Fidelity


def test_fidelity_is_of_the_sends_against_their_times():
    lags_s = np.array([0.0002] * 97 + [0.0009, 0.0011, 0.004])
    times = np.arange(100) / 10
    found = fidelity(requests(times, times + 1, times + lags_s))
    assert found.lag_p50_ms == pytest.approx(0.2) and found.lag_p99_ms == pytest.approx(1.1)
    assert found.lag_max_ms == pytest.approx(4.0)
    assert (found.punctual, found.unsent) == (0.98, 0)


def test_what_was_never_sent_was_not_on_time():
    of = requests([0, 1, 2, 3], [1, 2, 3, 4])
    sent_ns = of.sent_ns * [1, 0, 1, 1]
    found = fidelity(replace(of, sent_ns=sent_ns))
    assert (found.punctual, found.unsent, found.lag_max_ms) == (0.75, 1, 0.0)
    nothing = fidelity(requests([], []))
    assert np.isnan([nothing.punctual, nothing.lag_p99_ms]).all() and nothing.unsent == 0
