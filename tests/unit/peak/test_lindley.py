"""Tests of Lindley's recursion against a simulation of a server request by request."""

import numpy as np
import pytest

from perseus.peak.lindley import departures_s, idle_s


def test_departures_are_those_of_a_first_come_first_served_server():
    rng = np.random.default_rng(1)
    arrival_s, work_s = np.cumsum(rng.exponential(1.0, 500)), rng.exponential(0.9, 500)
    expected, idle, free_s = [], [0.0], 0.0
    for arrives_s, takes_s in zip(arrival_s, work_s, strict=True):
        idle.append(idle[-1] + max(0.0, arrives_s - free_s))
        free_s = max(arrives_s, free_s) + takes_s
        expected.append(free_s)
    assert departures_s(arrival_s, work_s) == pytest.approx(expected)
    assert idle_s(arrival_s, np.cumsum(work_s) - work_s) == pytest.approx(idle[1:])
