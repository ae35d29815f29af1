"""Tests that Perseus detects a temporary slowdown of a busy server from its throughput."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perseus.peak.lindley import departures_s
from perseus.peak.slowed import UsualSpeed, slowed
from perseus.peak.speed import Speed
from perseus.peak.system import Observation
from perseus.traffic.requests import Requests, Status

SECONDS = 5.0
USUAL = UsualSpeed((0.005,), (0.0,))


def requests(sent_s, done_s) -> Requests:
    """Return requests sent on schedule. NaN means that no response came."""
    sent_ns = np.round(sent_s * 1e9).astype(np.int64) + 1
    come = np.isfinite(done_s)
    return Requests(
        intended_ns=sent_ns,
        sent_ns=sent_ns,
        done_ns=np.where(come, np.nan_to_num(done_s) * 1e9, 0).astype(np.int64),
        status=np.where(come, Status.OK, Status.PENDING).astype(np.uint8),
    )


def window(*tenants: Requests) -> Observation:
    return Observation(0, SECONDS, tenants, (0.1,) * len(tenants))


def served(rate_rps, factor=lambda seconds: 1.0, work_s=lambda rng, n: np.full(n, 0.005), seed=0):
    """Return the requests of a first-come first-served tenant.

    The function `factor` returns the factor by which a request takes longer, given its send time in
    seconds.
    """
    rng = np.random.default_rng(seed)
    sent_s = np.cumsum(rng.exponential(1 / rate_rps, round(rate_rps * SECONDS)))
    sent_s = sent_s[sent_s < SECONDS]
    factors = np.vectorize(factor, otypes=[float])(sent_s)
    done_s = departures_s(sent_s, work_s(rng, len(sent_s)) * factors)
    return requests(sent_s, np.where(done_s < SECONDS, done_s, np.nan))


def between(first_s, last_s, factor):
    return lambda seconds: factor if first_s <= seconds < last_s else 1.0


def test_a_server_as_fast_as_usual_was_not_slowed_however_long_its_queue():
    assert slowed(window(served(150)), USUAL) == 1
    assert slowed(window(served(400)), USUAL) == 1


def test_half_a_second_at_half_the_speed_is_seen():
    assert slowed(window(served(150, between(2, 2.5, 2))), USUAL) == pytest.approx(2, rel=0.1)
    assert slowed(window(served(150, between(2, 2.5, 3))), USUAL) == pytest.approx(3, rel=0.15)


def test_where_no_requests_wait_nothing_is_seen():
    assert slowed(window(served(40, between(2, 2.5, 2))), USUAL) == 1
    assert slowed(window(requests(np.empty(0), np.empty(0))), USUAL) == 1


def test_a_pause_is_the_servers_own():
    def pauses(rng, n):
        return 0.005 + 0.3 * (np.arange(n) % 250 == 249)

    assert slowed(window(served(100, work_s=pauses)), USUAL) == 1


def test_work_that_varies_hardly_ever_looks_like_it():
    usual = replace(USUAL, variances_s2=(0.005**2,))
    found = [
        slowed(window(served(170, work_s=lambda rng, n: rng.exponential(0.005, n), seed=i)), usual)
        for i in range(40)
    ]
    assert max(found) < 1.5


def test_but_it_shows_over_a_longer_while():
    usual = replace(USUAL, variances_s2=(0.005**2,))
    many = served(150, between(1, 3.5, 3), lambda rng, n: rng.exponential(0.005, n))
    assert slowed(window(many), usual) > 2


def test_what_was_not_sent_does_not_wait():
    waiting = requests(np.linspace(0.1, 0.2, 50), np.full(50, np.nan))
    unsent = replace(waiting, status=np.full(50, Status.UNSENT, np.uint8))
    usual = UsualSpeed((0.005, 0.005), (0.0, 0.0))
    light = served(90, between(2, 2.5, 2))
    assert slowed(window(light, unsent), usual) == 1
    assert slowed(window(light, waiting), usual) > 1


def closed_loop(gap_s) -> Requests:
    """Return a closed loop of four requests in flight, with a response every `gap_s`."""
    done_s = np.arange(1, SECONDS / gap_s) * gap_s
    return requests(np.append(np.zeros(4), done_s[:-4]), done_s)


def test_tenants_who_always_slow_each_other_down_are_as_fast_as_usual():
    """Alone, each tenant has a response every 5 ms.

    Together, each tenant has a response every 20 ms, so the total throughput is half as high.
    """
    looks = [(Speed(200, 0.01, np.full(300, 0.005)),) * 2]
    together = window(closed_loop(0.02), closed_loop(0.02))
    usual = UsualSpeed.of(looks, together)
    assert usual.gaps_s == (0.005, 0.005) and usual.together == pytest.approx(0.5, rel=0.02)
    assert slowed(together, usual) == 1
    slower = window(closed_loop(0.04), closed_loop(0.04))
    assert slowed(slower, usual) == pytest.approx(2, rel=0.3)


def test_tenants_with_cores_of_their_own_are_not_expected_to_be_faster_than_alone():
    looks = [(Speed(200, 0.01, np.full(300, 0.005)),) * 2]
    usual = UsualSpeed.of(looks, window(closed_loop(0.005), closed_loop(0.005)))
    assert usual.together == 1
    idle = requests(np.empty(0), np.empty(0))
    assert slowed(window(closed_loop(0.005), idle), usual) == 1


def test_the_usual_speed_is_that_of_the_fastest_look():
    """Other load slows the first and the third probe. The speed of a tenant without load is NaN."""
    slow, fast, idle = Speed(100, 0.01), Speed(200, 0.01), Speed(np.nan, np.nan)
    alone = window(closed_loop(0.005), requests(np.empty(0), np.empty(0)))
    usual = UsualSpeed.of([(slow, idle), (fast, idle), (slow, idle)], alone)
    assert usual.gaps_s[0] == 0.005 and np.isnan(usual.gaps_s[1])
    unknown = UsualSpeed.of([(idle, idle)], alone)
    assert slowed(window(served(150, between(2, 2.5, 2)), alone.requests[1]), unknown) == 1
