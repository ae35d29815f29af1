"""Tests of slowdowns with a known truth, in virtual time: intervals have nominal coverage."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import cache, partial
from multiprocessing import get_context

import numpy as np
import pytest
from measure_tasks import measure_task, tenant

from benchmarks.simulation import SimulatedServer, drifting, exponential
from perseus.measurement.experiments.slowdown import offered
from perseus.peak.stats import Interval
from perseus.results.slowdowns import Step, closed, of_rounds, ratio
from perseus.results.tables.slowdown import of_pairs
from perseus.study.experiments.slowdown import Run
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla

WORK_S, SHARE, STUDIES = 0.005, 0.3, 60
TRUTH = (1 - SHARE) / (1 - 2 * SHARE)
"""Slowdown of a tenant in theory. The latency in M/M/1 is exponential with mean 1 / (mu - lambda),
so the slowdowns of the mean and of the p95 are equal."""


def study(seed, **server):
    """Return the rows of two equal tenants, each at SHARE of one shared worker's throughput."""
    rng = np.random.default_rng(seed)
    rate = SHARE / WORK_S
    run = Run(name="slowdown", percent_of_peak=None, rate_rps=rate, rounds=3)
    task = measure_task(
        *(tenant(name, sla=Sla(latency_ms=50.0)) for name in "ab"),
        run=run,
        search=PRESETS["quick"].settings,
    )
    system = SimulatedServer([exponential(WORK_S)] * 2, rng, **server)
    steps = [
        Step.model_validate(asdict(step))
        for step in offered(task, system, (rate, rate), rng, lambda window, left_s: None)
    ]
    return of_pairs(steps, rng)


@cache
def studies(**server):
    with ProcessPoolExecutor(mp_context=get_context("fork")) as pool:
        return list(pool.map(partial(study, **server), range(STUDIES)))


def covered(rows, truth, name="slowdown"):
    return np.mean([row[f"{name}_low"] <= truth <= row[f"{name}_high"] for row in rows])


SLOWER = drifting(0.003)
PAIR = ("a", "b")
PAIRS, ALONE = (("a", "b"), ("b", "a")), (("a", "a"), ("b", "b"))


def test_the_slowdown_of_a_shared_worker_is_that_of_theory():
    rows = [row for found in studies() for row in map(found.get, PAIRS)]
    assert {row["comparisons"] for row in rows} == {3}
    for name in ("slowdown", "p95_slowdown"):
        assert np.median([row[name] for row in rows]) == pytest.approx(TRUTH, rel=0.05)
        assert covered(rows, TRUTH, name) >= 0.93
    alone_ms = 1000 * WORK_S / (1 - SHARE)
    assert np.mean([row["alone_mean_ms"] for row in rows]) == pytest.approx(alone_ms, rel=0.03)


def test_of_a_tenant_alone_both_times_the_slowdown_is_1():
    rows = [row for found in studies() for row in map(found.get, ALONE)]
    assert np.median([row["slowdown"] for row in rows]) == pytest.approx(1, rel=0.03)
    assert covered(rows, 1.0) >= 0.95


def test_intervals_are_of_use():
    """The intervals are narrow enough to distinguish the slowdown TRUTH from 1."""
    rows = [row for found in studies() for row in map(found.get, PAIRS)]
    assert np.mean([row["beyond_noise"] for row in rows]) > 0.9
    for name, most in (("slowdown", 0.3), ("p95_slowdown", 0.4)):
        width = [np.log(row[f"{name}_high"] / row[f"{name}_low"]) / 2 for row in rows]
        assert np.median(width) < most


def test_noise_is_seldom_taken_for_a_slowdown():
    """The true slowdown of each pair is 1. The ratios of the rounds differ only by the stated
    errors."""
    rng, beyond = np.random.default_rng(0), []
    for _ in range(300):
        pair, noise = (
            [Interval(x, x / 1.3, x * 1.3) for x in np.exp(rng.normal(0, 0.13, 3))]
            for _ in range(2)
        )
        found = of_rounds({("a", "b"): pair, ("a", "a"): noise}, rng)
        ends = found["a", "b"].over(found["a", "a"]).interval()
        beyond.append(ends.low > 1 or ends.high < 1)
    assert np.mean(beyond) < 0.05


def test_a_host_that_slows_down_all_the_time_hardly_changes_a_ratio():
    """The host slows down by 0.3 % per second, one third in total.

    The windows of a comparison follow each other directly.
    """
    slowed, quiet = (
        [row for found in of for row in map(found.get, PAIRS)]
        for of in (studies(slowness=SLOWER), studies())
    )
    alone = [np.mean([row["alone_mean_ms"] for row in rows]) for rows in (slowed, quiet)]
    assert alone[0] > 1.1 * alone[1]
    # Longer service times also raise the utilisation, and with it the slowdown in theory. In the
    # middle of the measurement, each tenant alone has a utilisation of 0.345 instead of 0.3, so the
    # slowdown in theory is 2.1 instead of 1.75.
    assert np.median([row["slowdown"] for row in slowed]) == pytest.approx(2.1, rel=0.1)
    rows = [row for found in studies(slowness=SLOWER) for row in map(found.get, ALONE)]
    assert 1 < np.median([row["slowdown"] for row in rows]) < 1.07  # the host slows down


def test_errors_of_a_ratio_add_up_as_squares_of_logarithms():
    found = ratio(Interval(20, 18, 25), Interval(10, 9, 12))
    assert found.value == 2
    assert np.log(2 / found.low) == pytest.approx(np.hypot(np.log(20 / 18), np.log(12 / 10)))
    assert np.log(found.high / 2) == pytest.approx(np.hypot(np.log(25 / 20), np.log(10 / 9)))
    assert ratio(Interval(20, 18, np.inf), Interval(10, 9, 12)).high == np.inf


@pytest.mark.parametrize("unbounded", [np.inf, np.nan])
def test_an_upper_end_that_nothing_bounds_is_as_far_as_the_lower_one(unbounded):
    assert closed(Interval(20, 16, unbounded)) == Interval(20, 16, 25)
    assert closed(Interval(20, 16, 22)) == Interval(20, 16, 22)
    neither = closed(Interval(20, 0, unbounded))
    found = of_rounds({PAIR: [neither] * 3}, np.random.default_rng(0))[PAIR].interval()
    assert (found.value, found.low, found.high) == (pytest.approx(20), 0, np.inf)


def test_rounds_that_contradict_each_other_widen_the_intervals_of_all():
    agree = {PAIR: [Interval(x, 0.95 * x, 1.05 * x) for x in (1.5, 1.5, 1.5)]}
    differ = {("b", "a"): [Interval(x, 0.95 * x, 1.05 * x) for x in (1.2, 1.5, 1.9)]}
    narrow, wide = (
        of_rounds(ratios, np.random.default_rng(0))[PAIR].interval()
        for ratios in (agree, agree | differ)
    )
    assert wide.low < narrow.low and wide.high > narrow.high
    other = of_rounds(agree | differ, np.random.default_rng(0))["b", "a"].interval()
    assert other.value == pytest.approx((1.2 * 1.5 * 1.9) ** (1 / 3))
    assert other.low < 1.25 and other.high > 1.8


def test_many_pairs_that_agree_leave_the_intervals_of_their_windows():
    rng = np.random.default_rng(0)
    ratios = {
        ("a", str(i)): [Interval(x, x / 1.1, 1.1 * x) for x in np.exp(rng.normal(0, 0.0486, 3))]
        for i in range(30)
    }
    found = of_rounds(ratios, rng)["a", "0"].interval()
    assert np.log(found.high / found.low) / 2 == pytest.approx(np.log(1.1) / 3**0.5, rel=0.2)
