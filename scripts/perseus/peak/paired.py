"""Saturation throughput of the tenants of a server, alone and together in turn
(docs/explanation/sharing-ratio.md).

The speed of a host changes within minutes, which distorts comparisons of measurements that are
minutes apart. Therefore a shared server is saturated in short windows, each tenant alone and all
together, repeatedly and in a random order. The compared windows lie within seconds, as in duet
benchmarking (Bulej et al., ICPE 2020). A simulated queue converts the saturation throughputs into
limits that keep the SLAs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from perseus.peak.stats import Floats

OUTLYING, LEAST = 5.0, 0.005
"""Number of median absolute deviations from the median beyond which a round is left out, and
least size of such a deviation. Of normal values, 1 in 1,300 is as far from the median."""

NEAR = 0.25
"""Standard deviation of the exponent that distinguishes the disciplines, around the value of
each."""


@dataclass(frozen=True)
class Round:
    """Throughput of a saturated server in requests/s per tenant: alone, and all tenants together.

    NaN if a tenant has no load or got no response. Windows that other processes disturb count: they
    slow down all tenants of a round alike, and outlying rounds are left out.
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
    """Return the ratio from the mean rates of all rounds, with its jackknife error; infinite for
    fewer than three rounds.

    Rounds far from the median are left out, since another load on the host disturbed them.
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
    """Return the probability that the server serves requests in order of arrival, instead of all
    tenants at once.

    With equally many requests of each tenant in flight, the first kind of server gives all tenants
    the same throughput. The second kind gives each tenant the same share of its throughput alone.
    The share is proportional to the service time to the power of 1 or 0. If service times are
    equal, the two kinds do not differ, and the probability is one half.
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
    scatter = 0.05 / np.sqrt(squares)  # error of the shares, as seen on real hosts
    spread = np.hypot(NEAR, scatter)
    odds = 0.5 * (((exponent - 0) / spread) ** 2 - ((exponent - 1) / spread) ** 2)
    return float(special.expit(odds))


@dataclass(frozen=True)
class ModelLimits:
    """Limits of a simulated server with the observed service times of a cell.

    `alone_rps` is each tenant's limit alone, NaN without load. `scale` is the limit of the load
    line, and `scale_error` the standard deviation of its logarithm from the uncertain discipline.
    `utilisation` is that of the server at this limit.
    """

    alone_rps: tuple[float, ...]
    scale: float
    scale_error: float
    utilisation: float


UNKNOWN_LIMITS = ModelLimits((), np.nan, np.nan, np.nan)
