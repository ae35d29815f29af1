"""Tests of bursty and recorded arrivals: known rates, dispersion and times."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats as scipy_stats

from perseus.study.recorded import Recorded
from perseus.traffic.mmpp import Mmpp
from perseus.traffic.renewal import GammaGaps
from perseus.traffic.replayed import Replayed

BURSTY = Mmpp(burst_factor=5.0, burst_s=3.0, burst_share=0.1)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def mean_of_short_windows(process, rate_rps, seconds, windows=4000):
    draws = rng()
    return np.mean(
        [len(process.times_s(rate_rps, seconds, draws)) / seconds for _ in range(windows)]
    )


@pytest.mark.parametrize("process", [BURSTY, GammaGaps(4.0), GammaGaps(0.5)], ids=repr)
def test_times_ascend_within_the_window_at_the_asked_mean_rate(process):
    times = process.times_s(20, 20_000, rng())
    assert np.all(np.diff(times) >= 0) and times[0] >= 0 and times[-1] < 20_000
    assert len(times) == pytest.approx(20 * 20_000, rel=0.05)
    assert mean_of_short_windows(process, 20, 1.0) == pytest.approx(20, rel=0.06)


def test_the_rates_of_the_states_make_the_mean():
    quiet_rps, burst_rps = BURSTY.rates_rps(28.0)
    assert (quiet_rps, burst_rps) == pytest.approx((20.0, 100.0))
    assert 0.9 * quiet_rps + 0.1 * burst_rps == pytest.approx(28.0)


def dispersion_of_counts(process: Mmpp, rate_rps: float, seconds: float) -> float:
    """Return the index of dispersion for counts of a two-state MMPP.

    The index is 1 + 2 p q d² / (m r) (1 - (1 - exp(-r t)) / (r t)) (Heffes and Lucantoni, IEEE JSAC
    4, 1986). p and q are the shares of the states. d is the difference of their rates, and m is the
    mean rate. r is the sum of the rates at which the process leaves the states.
    """
    share = process.burst_share
    left = 1 / process.burst_s / (1 - share)
    apart = np.subtract(*process.rates_rps(rate_rps)) ** 2
    decay = 1 - (1 - np.exp(-left * seconds)) / (left * seconds)
    return 1 + 2 * share * (1 - share) * apart / (rate_rps * left) * decay


@pytest.mark.parametrize("seconds", [1, 10, 100])
def test_the_dispersion_of_counts_is_that_of_the_formula(seconds):
    length = 200_000
    times = BURSTY.times_s(5.0, length, rng())
    counts = np.histogram(times, np.arange(0, length + seconds, seconds))[0][: length // seconds]
    expected = dispersion_of_counts(BURSTY, 5.0, seconds)
    assert counts.var() / counts.mean() == pytest.approx(expected, rel=0.08)
    assert expected > 3


def test_bursts_take_their_share_of_the_time_and_last_as_long_as_they_should():
    edges_s, in_burst = BURSTY._states(300_000, rng())
    lengths_s = np.diff(edges_s)
    assert lengths_s[in_burst].sum() / 300_000 == pytest.approx(0.1, rel=0.05)
    assert lengths_s[in_burst].mean() == pytest.approx(3.0, rel=0.05)
    assert edges_s[0] == 0 and edges_s[-1] == 300_000


@pytest.mark.parametrize("cv", [0.5, 1.0, 4.0])
def test_gamma_gaps_have_the_asked_variation(cv):
    gaps = np.diff(GammaGaps(cv).times_s(10, 40_000, rng()))
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.05)


def test_gaps_that_vary_as_much_as_their_mean_are_poissons():
    gaps = np.diff(GammaGaps(1.0).times_s(10, 2000, rng()))
    assert scipy_stats.kstest(gaps, "expon", args=(0, 0.1)).pvalue > 0.01


def exactly(*times_s: float, length_s: float) -> Recorded:
    return Recorded(np.array(times_s, float), np.ones(len(times_s), np.int64), 0.0, length_s)


def test_a_recording_at_its_own_rate_has_its_own_times():
    replayed = Replayed(exactly(0, 1, 2.5, 6, 9, length_s=10))
    assert replayed.rate_rps(10) == 0.5
    assert replayed.times_s(0.5, 10, rng()).tolist() == [0, 1, 2.5, 6, 9]
    assert replayed.times_s(replayed.rate_rps(3), 3, rng()).tolist() == [0, 1, 2.5]


def test_a_recording_is_scaled_in_time_from_where_it_begins():
    replayed = Replayed(exactly(0, 1, 2.5, 6, 9, length_s=10), begin_s=2.0, time_scale=0.5)
    times = replayed.times_s(replayed.rate_rps(4), 4, rng())
    assert times.tolist() == [0.25, 2.0, 3.5]  # recorded at 2.5, 6 and 9 s
    assert replayed.rate_rps(2) == 0.5  # only the arrival recorded at 2.5 s


RECORDING = exactly(*np.cumsum(rng(3).gamma(0.5, 0.4, 20_000)), length_s=4000)


def test_thinning_keeps_each_arrival_with_the_probability_of_the_rates():
    replayed = Replayed(RECORDING)
    own_rps = replayed.rate_rps(3000)
    whole = replayed.times_s(own_rps, 3000, rng())
    kept = replayed.times_s(0.3 * own_rps, 3000, rng())
    assert len(kept) == pytest.approx(0.3 * len(whole), rel=0.03)
    chosen = np.isin(whole, kept)
    assert chosen.sum() == len(kept)  # no arrival is moved
    assert abs(np.corrcoef(chosen[1:], chosen[:-1])[0, 1]) < 0.03  # the choices are independent
    draws = rng()
    rates = [len(replayed.times_s(0.3 * own_rps, 3000, draws)) / 3000 for _ in range(50)]
    assert np.mean(rates) == pytest.approx(0.3 * own_rps, rel=0.005)


def test_superposition_lays_turned_copies_over_the_recording():
    replayed = Replayed(RECORDING)
    own_rps = replayed.rate_rps(3000)
    whole = replayed.times_s(own_rps, 3000, rng())
    more = replayed.times_s(2.5 * own_rps, 3000, rng())
    assert len(more) == pytest.approx(2.5 * len(whole), rel=0.02)
    assert np.isin(whole, more).all() and np.all(np.diff(more) >= 0)
    assert more[0] >= 0 and more[-1] < 3000
    others = more[~np.isin(more, whole)]
    counts = [np.histogram(each, 300, (0, 3000))[0] for each in (whole, others)]
    assert abs(np.corrcoef(counts)[0, 1]) < 0.2  # the bursts of both tenants do not coincide
    of_whole, of_more = (np.histogram(each, 300, (0, 3000))[0] for each in (whole, more))
    assert of_more.var() / of_more.mean() < 1.3 * of_whole.var() / of_whole.mean()


PER_MINUTE = Recorded(np.arange(4) * 60.0, np.array([600, 0, 6000, 60]), 60.0, 240.0)


def test_counts_of_a_minute_come_at_any_time_in_it():
    replayed = Replayed(PER_MINUTE)
    assert replayed.rate_rps(240) == 6660 / 240
    times = replayed.times_s(replayed.rate_rps(240), 240, rng())
    assert np.histogram(times, 4, (0, 240))[0].tolist() == [600, 0, 6000, 60]
    third = times[(times >= 120) & (times < 180)]
    assert scipy_stats.kstest(third, "uniform", args=(120, 60)).pvalue > 0.01


def test_a_part_of_a_minute_has_a_part_of_its_arrivals():
    replayed = Replayed(PER_MINUTE, begin_s=90.0, time_scale=0.1)
    # The replay has half of the 6000 arrivals in the third minute, and lasts 6 s.
    assert replayed.rate_rps(6.0) == 500.0
    times = replayed.times_s(500.0, 6.0, rng())
    assert len(times) == pytest.approx(3000, rel=0.05)
    assert times[0] >= 3.0 and times[-1] < 6.0


def test_a_billion_invocations_are_thinned_before_they_get_times():
    day = Recorded(np.arange(1440) * 60.0, np.full(1440, 700_000), 60.0, 86_400.0)
    times = Replayed(day, time_scale=1 / 720).times_s(50.0, 120.0, rng())
    assert len(times) == pytest.approx(6000, rel=0.05)


def test_whole_copies_of_counts_have_times_of_their_own():
    times = Replayed(PER_MINUTE).times_s(2 * 6660 / 240, 240, rng())
    assert len(times) == 2 * 6660 and len(np.unique(times)) == len(times)


def test_many_copies_of_a_few_arrivals_are_laid_out_at_once():
    """A loop over the copies took six seconds for each draw of 180,000 arrivals."""
    replayed = Replayed(exactly(5.0, length_s=3600))
    began_s = time.process_time()
    times = replayed.times_s(50.0, 3600, rng())
    assert time.process_time() - began_s < 1
    assert len(times) == 180_000 and times[0] >= 0 and times[-1] < 3600
    assert scipy_stats.kstest(times, "uniform", args=(0, 3600)).pvalue > 0.01
