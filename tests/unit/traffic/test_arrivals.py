"""Tests of arrivals: absolute, independent, at the requested rate, and reproducible."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from perseus.traffic.arrivals import Arrivals, stream


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


# Bursts of twenty arrivals, 10 ms apart, with half a second between bursts.
BURSTS = Arrivals("trace", gaps_s=(*[0.01] * 19, 0.5) * 30)


@pytest.mark.parametrize(
    "arrivals",
    [Arrivals("poisson"), Arrivals("constant"), Arrivals("gamma", cv=2.0), BURSTS],
    ids=lambda arrivals: arrivals.process,
)
def test_times_ascend_within_the_window_at_the_asked_rate(arrivals):
    times = arrivals.times_s(200, 50, rng())
    assert np.all(np.diff(times) >= 0) and times[0] >= 0 and times[-1] < 50
    assert len(times) == pytest.approx(200 * 50, rel=0.08)


def test_poisson_gaps_are_exponential_and_independent():
    times = Arrivals().times_s(100, 200, rng())
    gaps = np.diff(times)
    assert scipy_stats.kstest(gaps, "expon", args=(0, 0.01)).pvalue > 0.01
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 0.03
    counts = np.bincount(times.astype(int))
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.35)  # index of dispersion


def test_a_gamma_process_has_the_asked_variation():
    gaps = np.diff(Arrivals("gamma", cv=3.0).times_s(100, 1000, rng()))
    assert gaps.std() / gaps.mean() == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize("cv", [0.3, 4.0])
def test_short_windows_of_a_gamma_process_have_the_asked_rate(cv):
    """Each window begins at a random moment of the process.

    If each window began directly after an arrival, the mean rate would be too high or too low.
    """
    draws = rng()
    windows = [Arrivals("gamma", cv=cv).times_s(20, 1.0, draws) for _ in range(4000)]
    assert np.mean([len(times) for times in windows]) == pytest.approx(20, rel=0.04)


def test_gaps_that_vary_as_much_as_their_mean_are_poissons():
    expected = np.cumsum(rng().exponential(1 / 20, 38))
    for arrivals in (Arrivals(), Arrivals("gamma", cv=1.0)):
        assert np.array_equal(arrivals.times_s(20, 1.0, rng()), expected[expected < 1])


def test_constant_arrivals_are_paced_from_a_random_phase():
    first, second = (Arrivals("constant").times_s(10, 5, rng(seed)) for seed in (1, 2))
    assert np.allclose(np.diff(first), 0.1)
    assert first[0] != second[0]


@pytest.mark.parametrize("rate_rps", [5, 200, 3000])
def test_a_trace_keeps_its_variation_and_its_order_at_every_rate(rate_rps):
    """A window contains the trace many times, or only a part of the trace."""
    gaps = np.array(BURSTS.gaps_s)
    found = np.diff(BURSTS.times_s(rate_rps, 3000 / rate_rps, rng())) * rate_rps
    assert len(found) == pytest.approx(3000, rel=0.02)
    assert found.std() / found.mean() == pytest.approx(gaps.std() / gaps.mean(), rel=0.02)
    short, long = 0.01 / gaps.mean(), 0.5 / gaps.mean()
    joins = [gap for gap in found if min(abs(gap - short), abs(gap - long)) > 1e-9]
    assert len(joins) <= 3000 // len(gaps) + 1
    assert np.allclose(joins, 1)  # one mean gap joins the end of the trace to its beginning
    bursts = np.split(found, np.flatnonzero(found > 2) + 1)[1:-1]
    assert {len(burst) for burst in bursts} <= {20, 1, 21}  # a join is an additional gap


def test_a_mean_gap_joins_the_end_of_a_trace_to_its_beginning():
    gaps = np.diff(Arrivals("trace", gaps_s=(1.0, 3.0)).times_s(0.5, 30, rng()))
    first = gaps.argmax()  # 3 s, then the mean gap (2 s) as the join, then 1 s
    assert np.allclose(gaps[first : first + 6], [3, 2, 1, 3, 2, 1])


def test_a_trace_begins_at_a_random_time_of_it():
    """Because each window begins at a uniformly random time of the circular trace, the mean rate of
    many windows equals the asked rate."""
    windows = [BURSTS.times_s(100, 0.5, rng(seed)) for seed in range(2000)]
    assert np.mean([len(times) for times in windows]) == pytest.approx(50, rel=0.03)
    firsts = [times[0] for times in windows if len(times)]
    assert len(set(firsts)) == len(firsts)
    assert np.array_equal(BURSTS.times_s(100, 0.5, rng(7)), BURSTS.times_s(100, 0.5, rng(7)))


def test_tenants_that_replay_one_trace_are_independent():
    """The numbers of arrivals of two tenants in bins of 0.2 s correlate only by chance.

    If both tenants began at the same place of the trace, the correlation would be 1.
    """
    trace = Arrivals("trace", gaps_s=tuple(rng(3).gamma(0.2, 5, 20_000)))
    found = []
    for repeat in range(40):
        counts = [
            np.histogram(trace.times_s(50, 20, stream(1, repeat, tenant)), 100, (0, 20))[0]
            for tenant in (0, 1)
        ]
        found.append(np.corrcoef(counts)[0, 1])
    assert abs(np.mean(found)) < 0.08
    assert max(found) < 0.7


def test_a_stream_is_reproducible_and_differs_between_tenants_and_repeats():
    def draw(seed: int, repeat: int, tenant: int) -> float:
        return float(stream(seed, repeat, tenant).random())

    assert draw(1, 1, 0) == draw(1, 1, 0)
    assert len({draw(1, 1, 0), draw(1, 1, 1), draw(1, 2, 0), draw(2, 1, 0)}) == 4


def test_no_rate_means_no_requests_and_nonsense_is_refused():
    assert len(Arrivals().times_s(0, 10, rng())) == 0
    for rate, duration in ((-1, 1), (float("nan"), 1), (1, -1), (float("inf"), 1)):
        with pytest.raises(ValueError, match="must be finite and >= 0"):
            Arrivals().times_s(rate, duration, rng())
