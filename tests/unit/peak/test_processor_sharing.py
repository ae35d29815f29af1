"""Tests of a processor that tenants share, against known results."""

import numpy as np
import pytest

from perseus.peak.lindley import departures_s
from perseus.peak.processor_sharing import _of_any, served


def test_two_at_once_take_twice_as_long_until_one_is_done():
    arrivals_s, work_s = [np.zeros(1), np.zeros(1)], [np.array([1.0]), np.array([2.0])]
    first, second = served(arrivals_s, work_s)
    # Each tenant has half the speed for 2 s. At 2 s, the second tenant has 1 s of work left.
    assert (first, second) == (pytest.approx([2.0]), pytest.approx([3.0]))


def test_a_tenant_serves_its_own_requests_one_after_another():
    first, second = served(
        [np.array([0.0, 0.5]), np.array([1.0])], [np.array([1.0, 1.0]), np.array([0.5])]
    )
    # From 0 to 1 s, the first tenant is alone. From 1 s, both have half the speed, until the second
    # ends at 2 s; 0.5 s of work is left.
    assert first == pytest.approx([1.0, 2.0])
    assert second == pytest.approx([1.0])


def test_of_one_tenant_it_is_a_first_come_first_served_queue():
    rng = np.random.default_rng(1)
    arrivals_s, work_s = np.cumsum(rng.exponential(1, 2000)), rng.exponential(0.8, 2000)
    (latency_s,) = served([arrivals_s], [work_s])
    assert latency_s == pytest.approx(departures_s(arrivals_s, work_s) - arrivals_s)


def test_no_work_is_lost_and_none_is_done_twice():
    """The processor is idle exactly when a single queue with the same requests is idle."""
    rng = np.random.default_rng(2)
    arrivals_s = [np.cumsum(rng.exponential(gap, 500)) for gap in (1, 2, 3)]
    work_s = [rng.uniform(0, 0.7, 500) for _ in arrivals_s]
    latency_s = served(arrivals_s, work_s)
    ends_s = np.concatenate([a + late for a, late in zip(arrivals_s, latency_s, strict=True)])
    times_s, works_s = np.concatenate(arrivals_s), np.concatenate(work_s)
    order = np.argsort(times_s)
    queue_ends_s = departures_s(times_s[order], works_s[order])
    idle = queue_ends_s[:-1] < times_s[order][1:]
    assert idle.sum() > 100
    # At the end of a busy period, the shared processor and the queue have completed the same
    # requests, in different orders.
    assert np.isin(queue_ends_s[:-1][idle].round(9), ends_s.round(9)).all()


def test_equal_tenants_of_exponential_work_wait_as_in_theory():
    """Two equal M/M/1 queues that share a processor contain rho / (1 - rho) requests on average, as
    a single M/M/1 queue does. Therefore the mean latency is 1 / (mu (1 - rho)).
    """
    rng = np.random.default_rng(3)
    arrivals_s = [np.cumsum(rng.exponential(2 / 0.7, 40_000)) for _ in range(2)]
    work_s = [rng.exponential(1, 40_000) for _ in range(2)]
    mean_s = [float(each.mean()) for each in served(arrivals_s, work_s)]
    assert mean_s == pytest.approx([1 / 0.3] * 2, rel=0.08)


@pytest.mark.parametrize("step_s", [1e-6, 0.1], ids=["apart", "often at once"])
@pytest.mark.parametrize("seed", range(5))
def test_a_pair_is_served_as_two_of_any_number_are(seed, step_s):
    rng = np.random.default_rng(seed)
    arrivals_s = [np.sort(rng.uniform(0, 20, n)).round(-int(np.log10(step_s))) for n in (40, 300)]
    for work_s in ([rng.exponential(0.05, len(each)) for each in arrivals_s],
                   [np.full(len(each), 0.05) for each in arrivals_s]):  # fmt: skip
        for pace in (0.5, 1, 2):
            paced_s = [each / pace for each in arrivals_s]
            together, one_by_one = served(paced_s, work_s), _of_any(paced_s, work_s, 1.0)
            for mine, theirs in zip(together, one_by_one, strict=True):
                assert mine == pytest.approx(theirs)
