"""The load lines of the searches, in requests per second, and where the searches begin."""

from __future__ import annotations

import pytest

from perseus.peak.load_line import load_line
from perseus.study.experiments.peak import DEDICATED, Run

PEAKS = {"a": 100.0, "b": 40.0}


def line(run: Run):
    return load_line(run, ["a", "b"], PEAKS, {})


def test_a_dedicated_line_counts_in_requests_per_second():
    found, start = load_line(DEDICATED, ["a"], {}, {"a": 5.0})
    assert found.rates_rps(12) == (12.0,)
    assert start == pytest.approx(0.6 * 1000 / 5)


def test_a_mix_at_scale_1_is_what_dedicated_servers_carry():
    found, _ = line(Run.mix([3, 1]))
    assert found.rates_rps(1) == (75.0, 10.0)
    shares = [rate / PEAKS[name] for name, rate in zip("ab", found.rates_rps(0.8), strict=True)]
    assert sum(shares) == pytest.approx(0.8)


def test_a_held_tenant_stays_and_the_other_rises():
    found, start = line(Run.hold("b", 25))
    assert found.rates_rps(0.0) == (0.0, 10.0)
    assert found.rates_rps(0.75) == (75.0, 10.0)
    assert start < 0.75
