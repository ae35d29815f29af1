"""Tests of the service times that Perseus derives from the times of requests and responses."""

import numpy as np
import pytest

from benchmarks.simulation import batching, processor_sharing, workers
from perseus.peak.lindley import departures_s
from perseus.peak.observed_work import observed_work, work_error

N = 3000


def windows(rng, discipline, work_s, load=0.8, away_s=0.0):
    """Return two windows of a server with these service times and the network delay `away_s`."""
    arrivals, done, works = [], [], []
    for part in np.split(work_s, 2):
        arrival = np.cumsum(rng.exponential(part.mean() / load, len(part)))
        arrivals.append(arrival)
        done.append(discipline(arrival + away_s / 2, part) + away_s / 2)
        works.append(part)
    return arrivals, done, works


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("away_s", [0.0, 0.002])
@pytest.mark.parametrize("even", [False, True])
def test_the_work_of_a_single_server_is_read_off(rng, even, away_s):
    work_s = np.full(N, 0.005) if even else rng.exponential(0.005, N)
    arrivals, done, works = windows(rng, departures_s, work_s, away_s=away_s)
    seen = observed_work(arrivals, done, works[0][:40] + away_s)
    assert seen is not None
    # The network delay is estimated from low quantiles of a finite sample.
    assert seen.away_s == pytest.approx(away_s, abs=0.0003)
    for found, truth in zip(seen.windows_s, works, strict=True):
        assert np.quantile(np.abs(found - truth), 0.9) <= 0.0003


@pytest.mark.parametrize(
    ("discipline", "work_s", "load"),
    [
        (workers(4), 0.020, 3.2),
        (workers(2), 0.010, 1.7),
        (batching(8, 0.002, 0.004), 0.001, 0.5),
        (processor_sharing, 0.005, 0.8),
    ],
)
@pytest.mark.parametrize("even", [False, True])
def test_servers_that_do_not_work_one_by_one_have_no_work_to_read(
    rng, discipline, work_s, load, even
):
    works_s = np.full(N, work_s) if even else rng.exponential(work_s, N)
    arrivals, done, works = windows(rng, discipline, works_s, load=load)
    assert observed_work(arrivals, done, works[0][:40]) is None


def test_a_server_that_is_overwhelmed_in_one_window_has_none(rng):
    arrivals, done, works = windows(rng, departures_s, np.full(N, 0.005))
    few = departures_s(arrivals[1], np.full(N // 2, 0.5))
    done[1] = np.where(few < arrivals[1][-1], few, np.nan)
    assert np.count_nonzero(np.isfinite(done[1])) < 30
    assert observed_work(arrivals, done, works[0][:40]) is None


def test_a_rare_pause_hides_no_work(rng):
    """The pauses take 100 ms in every 5 s of work.

    The latency without load hardly ever contains a pause.
    """
    work_s = np.full(N, 0.005)
    work_s[300::1000] += 0.1
    arrivals, done, _ = windows(rng, departures_s, work_s)
    seen = observed_work(arrivals, done, np.full(40, 0.005))
    assert seen is not None
    assert np.concatenate(seen.windows_s).max() == pytest.approx(0.105, abs=0.001)


def test_nor_does_one_of_300_ms_in_each_500_requests(rng):
    work_s = np.full(N, 0.005)
    work_s[150::500] += 0.3
    arrivals, done, _ = windows(rng, departures_s, work_s, load=0.4)
    assert observed_work(arrivals, done, np.full(40, 0.005)) is not None


def test_lost_answers_leave_none_and_those_still_to_come_do(rng):
    arrivals, done, works = windows(rng, departures_s, rng.exponential(0.005, N))
    pending = [np.where(each < each[-20], each, np.nan) for each in done]
    seen = observed_work(arrivals, pending, works[0][:40])
    assert seen is not None
    assert [len(found) for found in seen.windows_s] == [len(truth) for truth in works]
    done[0][-30] = np.nan
    assert observed_work(arrivals, done, works[0][:40]) is None


def test_few_requests_that_waited_are_not_enough(rng):
    arrivals, done, works = windows(rng, departures_s, rng.exponential(0.005, N), load=0.05)
    assert observed_work(arrivals, done, works[0][:40]) is None


def test_the_luck_of_work_is_as_large_as_theory_says(rng):
    """In an M/M/1 queue, the limit at a fixed decay rate is the service rate minus the decay
    rate."""
    n, rate_rps = 5000, 140.0
    luck = work_error(rng.exponential(0.005, n), rate_rps, 4000, rng)
    # The decay rate is 60/s. The error follows from the delta method for rate = theta / (E
    # exp(theta work) - 1).
    theta, mean = 60.0, 0.005
    moment = 1 / (1 - theta * mean)
    variance = 1 / (1 - 2 * theta * mean) - moment**2
    expected = np.sqrt(variance / n) / (moment - 1)
    assert luck.std() == pytest.approx(expected, rel=0.35)
    assert np.mean(luck) == pytest.approx(1, abs=0.01)
    assert np.all(work_error(np.full(n, 0.005), rate_rps, 10, rng) == pytest.approx(1))
