"""Saturation throughput of the tenants of a server, alone and together in turn
(docs/explanation/sharing-ratio.md).

The speed of a host changes within minutes, which distorts comparisons of measurements that are
minutes apart. So a shared server is loaded to saturation in short windows, each tenant alone and
all together, again and again in another order: what is compared lies within seconds, as in duet
benchmarking (Bulej et al., ICPE 2020). A simulated queue leads from saturation to the limits
that keep the SLAs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from perseus.peak.stats import Floats

OUTLYING, LEAST = 5.0, 0.005
"""Median absolute deviations from the median beyond which a round is left out, and the least that
counts as one: of normal values 1 in 1,300 lies as far."""

NEAR = 0.25
"""How far the exponent that tells the disciplines apart may lie from that of either."""


@dataclass(frozen=True)
class Round:
    """Throughput of a saturated server in requests/s per tenant: alone, and all tenants together.

    NaN where a tenant has no load or got no answer. Windows that other processes disturb count:
    they slow the tenants of one round alike, and outlying rounds are left out.
    """

    alone_rps: tuple[float, ...]
    together_rps: tuple[float, ...]

    @property
    def shares(self) -> Floats:
        """Throughput of each tenant beside the others, as a share of its throughput alone."""
        return np.array(self.together_rps) / np.array(self.alone_rps)

    @property
    def ratio(self) -> float:
        """The sharing ratio at saturation; NaN if a tenant with load got no response."""
        shares = self.shares
        loaded = ~np.isnan(self.together_rps)
        return float(shares[loaded].sum()) if loaded.any() else np.nan


@dataclass(frozen=True)
class Estimate:
    """The logarithm of a quantity, and its standard error."""

    log: float
    error: float


def ratio_at_saturation(rounds: Sequence[Round]) -> Estimate:
    """The ratio from the mean rates of all rounds, with its jackknife error; infinite below three
    rounds.

    Rounds that lie far from the median are left out: something else on the host met them.
    """
    ratios = np.array([each.ratio for each in rounds])
    logs = np.log(np.where(ratios > 0, ratios, np.nan))
    known = np.flatnonzero(np.isfinite(logs))
    if not len(known):
        return Estimate(0.0, np.inf)
    far = np.abs(logs[known] - np.median(logs[known]))
    usual = known[far <= OUTLYING * max(float(np.median(far)), LEAST)]
    alone, together = (
        np.array([values(rounds[i]) for i in usual])
        for values in (lambda each: each.alone_rps, lambda each: each.together_rps)
    )

    def log_ratio(chosen: Floats) -> float:
        return float(np.log(np.nansum(chosen @ together / (chosen @ alone))))

    every = np.ones(len(usual))
    found = log_ratio(every)
    if len(usual) < 3:
        return Estimate(found, np.inf)
    without = np.array([log_ratio(every - one) for one in np.eye(len(usual))])
    n = len(usual)
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    t = special.stdtrit(n - 1, 0.975) / special.ndtri(0.975)
    return Estimate(found, float(t * error))


def first_come_probability(rounds: Sequence[Round], work_s: Sequence[float]) -> float:
    """The probability that the server serves requests in order of arrival, instead of all tenants
    at once.

    With equally many requests of each tenant in flight, the first kind of server gives all
    tenants the same throughput, and the second gives each tenant the same part of its throughput
    alone. The part is proportional to the service time to the power of 1 or 0. One half where
    work is equal, and both are the same.
    """
    valid = [each.shares for each in rounds if np.isfinite(each.ratio)]
    if not valid:
        return 0.5
    shares = np.nanmean(np.log(valid), axis=0)
    loaded = np.isfinite(shares)
    works = np.log(np.array(work_s)[loaded])
    apart = works - works.mean()
    squares = float(apart @ apart)
    if len(works) < 2 or squares < 1e-4:
        return 0.5
    exponent = float(apart @ shares[loaded]) / squares
    scatter = 0.05 / np.sqrt(squares)  # of the shares, by what hosts were seen to do
    spread = np.hypot(NEAR, scatter)
    odds = 0.5 * (((exponent - 0) / spread) ** 2 - ((exponent - 1) / spread) ** 2)
    return float(special.expit(odds))


@dataclass(frozen=True)
class ModelLimits:
    """Limits of a simulated server with the observed service times of a cell.

    `alone_rps` is each tenant's limit alone, NaN without load; `scale` is the limit of the load
    line, `scale_error` the deviation of its logarithm by what is not known of the discipline, and
    `utilisation` the part of its time that the server works there.
    """

    alone_rps: tuple[float, ...]
    scale: float
    scale_error: float
    utilisation: float


UNKNOWN_LIMITS = ModelLimits((), np.nan, np.nan, np.nan)
