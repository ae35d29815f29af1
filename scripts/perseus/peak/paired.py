"""Compare the saturation throughput of each tenant alone with its throughput beside all other
tenants, and compute the sharing ratio at saturation (docs/explanation/sharing-ratio.md).

The speed of a host changes within minutes. Such a change distorts the comparison of two
measurements that are minutes apart. Therefore a search saturates a shared server in rounds of short
windows. In each round, one window has requests of all tenants, and each other window has requests
of one tenant. Every second round has the windows in the reverse order. The compared windows are
only seconds apart, as in duet benchmarking (Bulej et al., ICPE 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from perseus.peak.stats import Floats

OUTLYING, LEAST = 5.0, 0.005
"""`ratio_at_saturation` leaves out a round if its log(sharing ratio) differs from the median over
all rounds by more than OUTLYING median absolute deviations. If the median absolute deviation is
below LEAST, the function uses LEAST in its place. Of 1,300 normally distributed values, only one
lies so far from the median."""

NEAR = 0.25
"""Standard deviation of the difference between the measured exponent and the exponent of the
server's queueing discipline, over all servers. `first_come_probability` defines the exponent."""


@dataclass(frozen=True)
class Round:
    """One round of saturation probes: the throughput of each tenant in requests/s, alone
    (`alone_rps`) and beside all other tenants (`together_rps`).

    A throughput is NaN if the tenant has no load or got too few responses. A round counts even if
    other processes disturbed it, because other processes slow down all windows of a round alike.
    """

    alone_rps: tuple[float, ...]
    together_rps: tuple[float, ...]

    @property
    def shares(self) -> Floats:
        """Return, for each tenant, its throughput beside all other tenants divided by its own
        throughput alone."""
        return np.array(self.together_rps) / np.array(self.alone_rps)

    @property
    def ratio(self) -> float:
        """Return the sharing ratio at saturation: the sum of `shares` over all tenants with load.
        The result is NaN if the throughput of a tenant with load is unknown."""
        shares = self.shares
        loaded = ~(np.isnan(self.alone_rps) & np.isnan(self.together_rps))
        return float(shares[loaded].sum()) if loaded.any() else np.nan


@dataclass(frozen=True)
class Estimate:
    """An estimated quantity: its logarithm, and the standard error of the logarithm."""

    log: float
    error: float


def ratio_at_saturation(rounds: Sequence[Round]) -> Estimate:
    """Return the logarithm of the sharing ratio at saturation, with its standard error.

    The function averages the throughputs over the rounds. It leaves out rounds whose ratio is far
    from the median (OUTLYING), because other processes have probably disturbed these rounds. The
    standard error comes from a jackknife over the rounds. With fewer than three rounds, the
    standard error is infinite.
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
    """Return the probability that the server serves all requests in the order of arrival. The
    alternative is that the server serves all tenants at the same time.

    `work_s` contains the mean service time of each tenant. In a round, all tenants have equally
    many requests in flight. Let q be the throughput of a tenant beside all other tenants, divided
    by its throughput alone. The function fits q = constant x (service time) ^ exponent to the
    tenants of the server. If the server serves all requests in the order of arrival, all tenants
    have the same throughput. Then q is proportional to the service time, and the exponent is 1. If
    the server serves all tenants at the same time, q is the same for all tenants, and the exponent
    is 0. If all service times are nearly equal, the exponent is unknown, and the function returns
    0.5.
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
    """The limits of a simulated server that has the service times observed in a cell (one
    measurement).

    `alone_rps` contains the limit of each tenant alone in requests/s, NaN for a tenant without
    load. `scale` is the limit of all tenants together, as a load factor. This limit depends on the
    queueing discipline, which is uncertain. Therefore, `scale` is the geometric mean over the
    possible disciplines, weighted by their probabilities. `scale_error` is the standard deviation
    of log(limit) between the disciplines. `utilisation` is the utilisation of the server at the
    load factor `scale`.
    """

    alone_rps: tuple[float, ...]
    scale: float
    scale_error: float
    utilisation: float


UNKNOWN_LIMITS = ModelLimits((), np.nan, np.nan, np.nan)
