"""Tests of the verdict of a window: causes of fail, invalid and undecided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from perseus.peak.evidence import Evidence
from perseus.peak.stats import Exceedances
from perseus.peak.system import Observation
from perseus.peak.verdict import ON_BUSY_HOST, ON_IDLE_HOST, TenantWindow, Tolerance, counted, judge
from perseus.peak.window import Phase, Window
from perseus.study.sla import Sla
from perseus.traffic.requests import Requests, Status

SLA = Sla(latency_ms=100)
RATE_RPS, SECONDS = 100, 20


def requests(latency_ms: float = 20.0, n: int = RATE_RPS * SECONDS) -> Requests:
    """Return evenly spaced requests with the latency `latency_ms`."""
    intended = 10**12 + np.arange(n) * (10**9 // RATE_RPS)
    return Requests(
        intended_ns=intended,
        sent_ns=intended + 50_000,
        done_ns=intended + int(latency_ms * 1e6),
        status=np.full(n, Status.OK, np.uint8),
    )


def verdict(
    part: Requests,
    cpu: float = 0.1,
    other_load: float = 0.0,
    similar: Sequence[tuple[float, Exceedances]] = (),
    queue_ms: tuple[np.ndarray, ...] = (),
    sla: Sla = SLA,
    other_gpu_share: float | None = None,
    slowed: float = 1.0,
    tolerance: Tolerance = ON_IDLE_HOST,
) -> TenantWindow:
    """Return the verdict on all requests, one second after the last request."""
    start_ns = int(part.intended_ns[0])
    elapsed_s = (int(part.intended_ns[-1]) - start_ns) / 1e9 + 1
    return judge(
        Observation(start_ns, elapsed_s, (part,), (cpu,), other_load, queue_ms, other_gpu_share),
        0,
        sla,
        rate_rps=RATE_RPS,
        settle_s=0.0,
        grace_s=0.0,
        confidence=0.95,
        similar=similar,
        slowed=slowed,
        tolerance=tolerance,
    )


def late(part: Requests, share: float) -> Requests:
    """Give `share` of the requests a latency of 300 ms."""
    done = part.done_ns.copy()
    step = round(1 / share)
    done[::step] = part.intended_ns[::step] + 300_000_000
    return replace(part, done_ns=done)


def sent_late(part: Requests, lag_ms: float) -> Requests:
    return replace(part, sent_ns=part.intended_ns + int(lag_ms * 1e6))


def test_a_good_window_passes():
    seen = verdict(requests())
    assert (seen.verdict, seen.p50_ms, seen.errors) == ("pass", 20.0, 0)


def test_too_many_late_answers_fail_it_and_a_borderline_share_is_undecided():
    assert verdict(late(requests(), 0.20)).verdict == "fail"
    assert verdict(late(requests(), 0.05)).verdict == "undecided"
    assert verdict(late(requests(), 0.01)).verdict == "pass"


def test_latency_counts_from_the_intended_send_not_the_actual_one():
    """Coordinated omission: the latency contains the delay of a client that stalls."""
    part = requests()
    stalled = (part.intended_ns - part.intended_ns[0]) // 10**9 % 5 == 0
    sent = np.where(stalled, part.intended_ns + 200_000_000, part.sent_ns)
    part = replace(part, sent_ns=sent, done_ns=sent + 20_000_000)
    assert part.latency_ms(0).max() == pytest.approx(220)
    assert verdict(part).service_p50_ms == pytest.approx(20)
    assert verdict(part).p95_ms > 200


def test_a_client_that_sends_late_makes_the_window_invalid():
    part = requests()
    seen = verdict(replace(part, sent_ns=part.intended_ns + 5_000_000))
    assert seen.verdict == "invalid" and "send lag" in seen.reason


def test_a_window_states_the_send_lag_that_it_allows():
    on_idle, on_busy = verdict(requests()), verdict(requests(), tolerance=ON_BUSY_HOST)
    assert (on_idle.send_lag_limit_ms, on_busy.send_lag_limit_ms) == (2.0, 20.0)


def test_a_client_without_cpu_to_spare_makes_the_window_invalid():
    assert verdict(requests(), cpu=0.9).verdict == "invalid"


def test_other_work_on_the_servers_cores_makes_the_window_invalid():
    seen = verdict(requests(), other_load=0.34)
    assert seen.verdict == "invalid" and "34%" in seen.reason
    assert verdict(requests(), other_load=0.03).verdict == "pass"


def test_other_work_on_the_servers_gpu_makes_the_window_invalid_too():
    seen = verdict(requests(), other_load=0.03, other_gpu_share=0.4)
    assert (seen.verdict, seen.other_gpu_share, seen.disturbed) == ("invalid", 0.4, True)
    assert seen.reason == "other processes used 40% of the server's GPU"
    both = verdict(requests(), other_load=0.5, other_gpu_share=0.4)
    assert both.reason == "other processes used 50% of the server's cores"
    for share in (0.1, 0.0, None):
        assert verdict(requests(), other_gpu_share=share).verdict == "pass"
    assert verdict(requests(), other_gpu_share=0.4, tolerance=ON_BUSY_HOST).verdict == "pass"
    assert verdict(requests(), other_gpu_share=0.6, tolerance=ON_BUSY_HOST).verdict == "invalid"


def test_a_server_that_something_slowed_is_not_blamed_for_late_answers():
    some_late = late(requests(), 0.3)
    seen = verdict(some_late, slowed=2.1)
    assert (seen.verdict, seen.slowed, seen.disturbed) == ("invalid", 2.1, True)
    assert "2.1 times as slow as usual" in seen.reason and "longer than 100 ms" in seen.reason
    assert verdict(some_late, slowed=1.4).verdict == "fail"
    assert verdict(late(requests(), 0.05), slowed=1.4).verdict == "undecided"
    assert verdict(late(requests(), 0.05), slowed=1.6).verdict == "invalid"
    assert verdict(requests(), slowed=2.1).verdict == "pass"
    assert verdict(some_late, slowed=2.1, tolerance=ON_BUSY_HOST).verdict == "invalid"
    assert (
        verdict(some_late, slowed=2.1, tolerance=replace(ON_IDLE_HOST, slowed=np.inf)).verdict
        == "fail"
    )


def test_what_else_ran_on_the_host_is_told_from_what_the_client_did():
    busy, idle = verdict(requests(), other_load=0.34), verdict(sent_late(requests(), 5), cpu=0.05)
    for seen in (busy, idle):
        assert seen.verdict == "invalid" and seen.disturbed
    assert "only 5% of its core: the host delayed the client" in idle.reason
    for seen in (
        verdict(requests()),
        verdict(requests(), cpu=0.9),
        verdict(sent_late(requests(), 5), cpu=0.4),
        verdict(late(requests(), 0.2), other_load=0.05),
    ):
        assert not seen.disturbed and "the host delayed" not in seen.reason


@pytest.mark.parametrize(
    ("part", "cpu", "reason"),
    [
        (requests(), 0.9, "the client used 90% of its core"),
        (sent_late(requests(latency_ms=120), 40), 0.5, "send lag p99 40.000 ms > 20.000 ms"),
    ],
)
def test_a_load_of_other_processes_that_the_window_tolerates_did_not_disturb_it(part, cpu, reason):
    seen = verdict(part, cpu=cpu, other_load=0.12, slowed=1.4, tolerance=ON_BUSY_HOST)
    assert (seen.verdict, seen.reason, seen.disturbed) == ("invalid", reason, False)


def test_a_client_that_stalls_for_half_a_window_does_not_make_the_server_fail():
    part = requests()
    half = len(part) // 2
    sent, done, status = part.sent_ns.copy(), part.done_ns.copy(), part.status.copy()
    sent[half:], done[half:], status[half:] = 0, 0, Status.PENDING
    seen = verdict(replace(part, sent_ns=sent, done_ns=done, status=status))
    assert seen.verdict == "invalid" and "send lag" in seen.reason


def test_requests_that_were_never_sent_make_the_window_invalid_unless_it_fails():
    part = requests()
    status, sent, done = part.status.copy(), part.sent_ns.copy(), part.done_ns.copy()
    status[-100:], sent[-100:], done[-100:] = Status.UNSENT, 0, 0
    unsent = replace(part, status=status, sent_ns=sent, done_ns=done)
    assert verdict(unsent).verdict == "invalid"
    slow = replace(unsent, done_ns=np.where(sent > 0, part.intended_ns + 400_000_000, 0))
    assert verdict(slow).verdict == "fail"


def test_a_window_of_which_nothing_was_sent_is_invalid_and_does_not_pass():
    """Because too many requests were in flight, the client dropped all counted requests, so no
    counted request was late."""
    part = requests()
    nothing = np.zeros_like(part.sent_ns)
    unsent = np.full(len(part), Status.UNSENT, np.uint8)
    seen = verdict(replace(part, status=unsent, sent_ns=nothing, done_ns=nothing))
    assert (seen.verdict, seen.requests) == ("invalid", 0)
    assert seen.reason == "the client sent 0.0% of the requests"


def few_unsent():
    """Return requests of which the client dropped one in 250.

    A window with this share of dropped requests is valid, although the share is four times the
    exceedance that an SLA at p99.9 allows.
    """
    part = requests(n=5000)
    status, sent, done = part.status.copy(), part.sent_ns.copy(), part.done_ns.copy()
    status[::250], sent[::250], done[::250] = Status.UNSENT, 0, 0
    return replace(part, status=status, sent_ns=sent, done_ns=done)


def test_requests_that_were_never_sent_are_not_late():
    seen = verdict(few_unsent(), sla=Sla(latency_ms=100, percentile=99.9))
    assert (seen.unsent, seen.requests, seen.completed_ratio) == (20, 4980, 1.0)
    assert seen.exceedance == 0 and max(seen.p99_ms, seen.sla_percentile_ms) <= 100


def test_requests_that_were_never_sent_do_not_make_the_queue_grow():
    seen = verdict(few_unsent())
    assert (seen.verdict, seen.backlog_growth_rps) == ("pass", 0.0)


def test_requests_that_were_never_sent_have_no_influence_on_the_limit():
    part, sla = few_unsent(), Sla(latency_ms=100, percentile=99.9)
    seen = Observation(int(part.intended_ns[0]), 5000 / RATE_RPS + 1, (part,), (0.1,))
    window = Window(Phase.NEAR_LIMIT, 1.0, 0.0, 1.0, (verdict(part, sla=sla),), seen)
    assert not Evidence.of(window, 0, sla, grace_s=0.0).late.any()


@pytest.mark.parametrize("status", [Status.ERROR, Status.TIMEOUT, Status.REFUSED])
def test_errors_count_as_late(status):
    part = requests()
    codes = part.status.copy()
    codes[::5] = status
    seen = verdict(replace(part, status=codes))
    assert (seen.verdict, seen.errors) == ("fail", len(part) // 5)
    kinds = {
        Status.TIMEOUT: seen.timeouts,
        Status.REFUSED: seen.refused,
        Status.ERROR: seen.failed,
        Status.UNSENT: seen.unsent,
    }
    assert kinds.pop(status) == seen.errors
    assert set(kinds.values()) == {0}


def test_a_leak_of_two_percent_is_not_within_the_sla_although_95_percent_are():
    part = requests()
    status, done = part.status.copy(), part.done_ns.copy()
    status[::50], done[::50] = Status.PENDING, 0
    seen = verdict(replace(part, status=status, done_ns=done))
    assert seen.exceedance_high < 0.05
    assert seen.verdict == "fail" and "answered 98.0%" in seen.reason


def test_a_growing_backlog_fails_although_nothing_is_late_yet():
    part = requests()
    growing = np.linspace(5, 95, len(part)) * 1e6
    seen = verdict(replace(part, done_ns=part.intended_ns + growing.astype(np.int64)))
    assert seen.exceedance == 0
    assert seen.verdict == "fail" and "queue of the server grows" in seen.reason


def test_two_percent_of_errors_are_not_answers():
    part = requests()
    codes = part.status.copy()
    codes[::50] = Status.ERROR
    seen = verdict(replace(part, status=codes))
    assert seen.exceedance_high < 0.05
    assert seen.verdict == "fail" and "answered 98.0%" in seen.reason


def test_long_latencies_alone_are_no_backlog():
    """The growth of the requests in flight includes requests of the settling time, which are not
    counted requests."""
    part = requests(latency_ms=90, n=400)
    seen = Observation(int(part.intended_ns[0]), 4.0, (part,), (0.1,))
    window = judge(
        seen,
        0,
        SLA,
        rate_rps=RATE_RPS,
        settle_s=1.0,
        grace_s=0.2,
        confidence=0.95,
    )
    assert (window.verdict, abs(window.backlog_growth_rps)) == ("pass", 0.0)


def test_few_requests_decide_nothing():
    part = requests(n=40)
    assert verdict(part).verdict == "undecided"
    few = verdict(requests(n=129))
    assert few.verdict == "undecided" and "p95 needs at least 130" in few.reason
    assert verdict(requests(n=130)).verdict == "pass"


def test_late_requests_that_cluster_elsewhere_prove_less_here():
    """For a window without late requests, Perseus uses the correlation in windows at similar
    loads."""
    bursts = Exceedances(requests=1000, late=50, episode_squares=50 * 25, correlation=25)
    assert verdict(requests(n=200), similar=[(1.0, bursts)]).verdict == "undecided"
    assert verdict(requests(n=2000), similar=[(1.0, bursts)]).verdict == "pass"


def test_a_queue_time_that_rises_is_falling_behind():
    """The counters of the server show the backlog before the responses do."""
    seconds = np.arange(1.0, 5.0, 0.5)
    rising = np.stack([seconds, 40 * seconds], axis=1)
    assert verdict(requests(), queue_ms=(rising,)).reason == "the queue of the server grows"
    flat = np.stack([seconds, 40 + seconds % 1], axis=1)
    assert verdict(requests(), queue_ms=(flat,)).verdict == "pass"


def test_what_counts_was_intended_after_settling_and_long_enough_ago():
    part = requests()
    seen = Observation(int(part.intended_ns[0]), 20.0, (part,), (0.0,))
    inner = counted(seen, 0, settle_s=2, grace_s=1)
    assert len(inner) == 17 * RATE_RPS
    assert inner.intended_ns[0] == part.intended_ns[0] + 2 * 10**9


def test_a_late_client_does_not_excuse_a_server_that_is_later_by_far():
    overload = verdict(sent_late(requests(latency_ms=1000), lag_ms=30))
    assert (overload.verdict, overload.reason) == (
        "fail",
        "100.0% of the requests take longer than 100 ms",
    )
    assert not overload.punctual and verdict(requests()).punctual


@pytest.mark.parametrize(("latency_ms", "found"), [(255, "invalid"), (265, "fail")])
def test_what_a_late_client_may_explain_does_not_fail_the_server(latency_ms, found):
    """If the client sends too late, a window fails only at latencies above 2 x SLA + 2 x send lag =
    260 ms."""
    part = sent_late(requests(latency_ms=latency_ms), lag_ms=30)
    assert verdict(part).verdict == found
    assert verdict(requests(latency_ms=155)).verdict == "fail"


def test_the_longest_lag_is_that_of_any_tenant():
    part, other = sent_late(requests(latency_ms=265), 30), sent_late(requests(), 60)
    start_ns = int(part.intended_ns[0])
    together = Observation(start_ns, SECONDS + 1, (part, other), (0.1, 0.1))
    alone = Observation(start_ns, SECONDS + 1, (part,), (0.1,))
    found = [
        judge(seen, 0, SLA, rate_rps=RATE_RPS, settle_s=0.0, grace_s=0.0, confidence=0.95).verdict
        for seen in (alone, together)
    ]
    assert found == ["fail", "invalid"]


@pytest.mark.parametrize(
    ("latency_ms", "cpu", "tolerance", "found"),
    [
        (90, 0.1, ON_IDLE_HOST, "invalid"),
        (90, 0.1, ON_BUSY_HOST, "pass"),
        (90, 0.5, ON_BUSY_HOST, "invalid"),  # the client's own load may cause the late responses
        (120, 0.1, ON_BUSY_HOST, "invalid"),  # sent on time, the request might have met the SLA
        (300, 0.1, ON_BUSY_HOST, "fail"),
    ],
)
def test_on_a_busy_host_late_sends_do_not_discard_responses_within_the_sla(
    latency_ms, cpu, tolerance, found
):
    part = sent_late(requests(latency_ms=latency_ms), 40)
    seen = Observation(int(part.intended_ns[0]), SECONDS + 1, (part,), (cpu,))
    given = {"rate_rps": RATE_RPS, "settle_s": 0.0, "grace_s": 0.0, "confidence": 0.95}
    assert judge(seen, 0, SLA, tolerance=tolerance, **given).verdict == found


def test_a_tenant_whose_client_was_punctual_is_not_told_that_it_was_held_up():
    late, punctual = sent_late(requests(), 30), requests(latency_ms=120)
    together = Observation(int(late.intended_ns[0]), SECONDS + 1, (late, punctual), (0.05, 0.05))
    reasons = [
        judge(
            together, i, SLA, rate_rps=RATE_RPS, settle_s=0.0, grace_s=0.0, confidence=0.95
        ).reason
        for i in range(2)
    ]
    assert "the host delayed the client" in reasons[0]
    assert "for another tenant" in reasons[1] and "the host delayed" not in reasons[1]


@pytest.mark.parametrize(
    ("lags_ms", "cpu", "disturbed"),
    [
        ((5, 0), (0.05, 0.3), [True, True]),  # the host delays the first client
        ((5, 3), (0.05, 0.3), [True, True]),
        ((5, 0), (0.3, 0.05), [False, False]),  # the first client delays itself
        ((5, 3), (0.3, 0.05), [False, False]),
        ((5, 0), (0.05, 0.9), [True, False]),  # the second client uses a core that both may need
    ],
)
def test_the_client_with_the_longest_lag_tells_who_disturbed_the_window(lags_ms, cpu, disturbed):
    parts = tuple(sent_late(requests(), lag_ms) for lag_ms in lags_ms)
    together = Observation(int(parts[0].intended_ns[0]), SECONDS + 1, parts, cpu)
    given = {"rate_rps": RATE_RPS, "settle_s": 0.0, "grace_s": 0.0, "confidence": 0.95}
    windows = [judge(together, i, SLA, **given) for i in range(2)]
    assert [each.verdict for each in windows] == ["invalid"] * 2
    assert [each.disturbed for each in windows] == disturbed


def test_a_time_out_that_a_frozen_client_explains_does_not_fail_the_server():
    part = sent_late(requests(latency_ms=6000), lag_ms=5000)
    timeouts = replace(part, status=np.full(len(part), Status.TIMEOUT, np.uint8))
    refused = replace(part, status=np.full(len(part), Status.REFUSED, np.uint8))
    assert verdict(timeouts).verdict == "invalid" and verdict(refused).verdict == "fail"


def test_a_busy_client_is_no_witness_however_late_the_server_is():
    window = verdict(sent_late(requests(latency_ms=1000), lag_ms=30), cpu=0.9)
    assert window.verdict == "invalid" and "90% of its core" in window.reason
