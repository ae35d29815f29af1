"""Compare the saturation throughputs of a server's tenants, each tenant alone and all together
(docs/explanation/sharing-ratio.md).

The speed of a host changes within minutes, which distorts comparisons of measurements that are
minutes apart. Therefore a search saturates a shared server in short windows, with each tenant alone
and with all tenants together, repeatedly and in alternating order. The windows to compare are
seconds apart, as in duet benchmarking (Bulej et al., ICPE 2020). A simulated queue converts the
saturation throughputs into limits that keep the SLAs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from perseus.peak.stats import Floats

OUTLYING, LEAST = 5.0, 0.005
"""A round does not count if its log(sharing ratio) is more than OUTLYING median absolute deviations
from the median of all rounds. A smaller median absolute deviation than LEAST counts as LEAST. Of
normally distributed values, 1 in 1,300 is further from the median."""

NEAR = 0.25
"""Standard deviation of the measured exponent of a server (`first_come_probability`) around the
theoretical exponent of its queueing discipline, which is 0 or 1."""


@dataclass(frozen=True)
class Round:
    """Saturation throughputs of each tenant in requests/s, alone and together with all other
    tenants.

    The throughput is NaN if a tenant has no load or got no response. A round may contain disturbed
    windows, because other processes slow all tenants of the round alike. The estimate of the
    sharing ratio ignores a round that differs strongly from the other rounds.
    """

    alone_rps: tuple[float, ...]
    together_rps: tuple[float, ...]

    @property
    def shares(self) -> Floats:
        """Return, for each tenant, its throughput beside all other tenants divided by its
        throughput alone."""
        return np.array(self.together_rps) / np.array(self.alone_rps)

    @property
    def ratio(self) -> float:
        """Return the sharing ratio at saturation; NaN if a tenant with load got no response."""
        shares = self.shares
        loaded = ~np.isnan(self.together_rps)
        return float(shares[loaded].sum()) if loaded.any() else np.nan


@dataclass(frozen=True)
class Estimate:
    """The logarithm of a quantity, and the standard error of this logarithm."""

    log: float
    error: float


def ratio_at_saturation(rounds: Sequence[Round]) -> Estimate:
    """Return the sharing ratio at saturation, from the mean throughputs over the rounds.

    The standard error comes from a jackknife over the rounds, and is infinite for fewer than three
    rounds. The function ignores rounds whose ratio is far from the median, because other processes
    disturbed these rounds.
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
    """Return the probability that the server serves all requests in the order of arrival, instead
    of serving all tenants at the same time.

    In a round, all tenants have equally many requests in flight. If the server works in the order
    of arrival, all tenants have the same throughput. If the server serves all tenants at the same
    time, the quotient throughput together / throughput alone is the same for all tenants. In
    general, the quotient is proportional to a power of the tenant's service time. The exponent is 1
    for service in the order of arrival, and 0 for service at the same time. The probability follows
    from the measured exponent. If all service times are equal, the exponent cannot be measured, and
    the probability is one half.
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
    scatter = 0.05 / np.sqrt(squares)  # on real hosts, the shares have errors of about 5 %
    spread = np.hypot(NEAR, scatter)
    odds = 0.5 * (((exponent - 0) / spread) ** 2 - ((exponent - 1) / spread) ** 2)
    return float(special.expit(odds))


@dataclass(frozen=True)
class ModelLimits:
    """The limits of a simulated server with the observed service times of a cell.

    `alone_rps` contains the limit of each tenant alone, NaN without load. `scale` is the limit of
    the load line as a load factor. `scale_error` is the standard deviation of log(scale) that
    follows from the unknown queueing discipline. `utilisation` is the utilisation of the server at
    the limit of the load line.
    """

    alone_rps: tuple[float, ...]
    scale: float
    scale_error: float
    utilisation: float


UNKNOWN_LIMITS = ModelLimits((), np.nan, np.nan, np.nan)
