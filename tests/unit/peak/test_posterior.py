"""Tests of the posterior of a limit from windows that all show about the same limit, and from
windows of which one shows another limit."""

from __future__ import annotations

import numpy as np

from perseus.peak.exceedance_curve import ExceedanceCurve
from perseus.peak.posterior import LateCounts, Posterior

LEVEL = float(np.log(0.05 / 0.95))
ABOUT = np.linspace(-0.6, 0.3, 16)
# the logit rises by 2.4 when the load rises by 10 %
CURVE = ExceedanceCurve(ABOUT, LEVEL + 25 * ABOUT, 0.0, LEVEL)


def ends(rates_rps, late, requests=600):
    """Return the 95 % interval of the limit from windows with independent late requests."""
    count = len(rates_rps)
    counts = LateCounts(
        log_scales=np.log(rates_rps),
        late=np.array(late, float),
        requests=np.full(count, float(requests)),
        weights=np.full(count, 0.2),
        freedom=20.0,
    )
    low, high = np.exp(Posterior.of(counts, CURVE, 1.0).at([0.025, 0.975]))
    return low, high


def test_windows_that_agree_give_a_narrow_interval():
    low, high = ends([110, 116, 120, 124, 130], [3, 13, 30, 61, 170])
    assert low < 120 < high < 1.2 * low


def test_one_window_that_met_a_burst_widens_it_and_does_not_decide():
    """One window fails at 122 requests/s. In the other windows, at up to 124 requests/s, no request
    is late."""
    low, high = ends([122, 103, 110, 117, 124], [117, 0, 0, 0, 0])
    assert high > 124 and high > 1.3 * low
    without_low, _ = ends([103, 110, 117, 124], [0, 0, 0, 0])
    assert low > 0.8 * without_low
