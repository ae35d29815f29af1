"""Compute how the share of late requests depends on the load, in the steady state of a virtual
queue (a simulated server)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from perseus.peak.line_model import LineModel
from perseus.peak.stats import Floats

MORE_RUNS = 6
"""Number of additional simulations at the limit of the virtual queue. The additional simulations
reduce the sampling error of this limit."""

COARSE = 8
"""In the first, rough search for the limit of the virtual queue, each simulation has 1 / COARSE of
the usual number of requests."""

Logit = Callable[[float, int, int], float]
"""Function that simulates a virtual queue, and returns the logit of the share of late requests. The
arguments are the load factor, the number of requests, and the index of the simulation."""


@dataclass(frozen=True)
class ExceedanceCurve:
    """The logit of the share of late requests in the steady state of a virtual queue, as a function
    of log(load factor).

    At `log_limit`, the curve reaches `level`. This level is the logit of the share of late requests
    that the SLA allows.
    """

    log_scales: Floats
    logits: Floats
    log_limit: float
    level: float

    @classmethod
    def of(cls, model: LineModel, tenant: int, requests: int) -> ExceedanceCurve:
        """Compute the curve of a tenant along the load line. Each simulation has `requests`
        requests."""
        allowed = model.slas[tenant].allowed
        level = float(np.log(allowed / (1 - allowed)))
        logit = _long_run_logit(model, tenant)
        near = _crossing(lambda scale: logit(scale, requests // COARSE, 0), level)
        log_scales = np.log(near) + np.linspace(-0.6, 0.3, 16)
        logits = np.maximum.accumulate([logit(float(np.exp(x)), requests, 0) for x in log_scales])
        log_limit = float(np.interp(level, logits, log_scales))
        # All simulations above use the same random numbers. The mean over simulations with other
        # random numbers is more precise.
        runs = [logit(float(np.exp(log_limit)), requests, run) for run in range(1, MORE_RUNS + 1)]
        slope = float(np.interp(log_limit, log_scales, np.gradient(logits, log_scales)))
        shift = float(np.mean([0, *(run - level for run in runs)])) / max(slope, 1.0)
        return cls(log_scales - shift, logits, log_limit - shift, level)

    def share(self, scale: float) -> float:
        return float(1 / (1 + np.exp(-np.interp(np.log(scale), self.log_scales, self.logits))))

    def above_level(self, log_scales: Floats) -> Floats:
        """Return the logit of the share of late requests, minus `level`, at each of several loads.
        `log_scales` contains log(load factor / limit) of each load."""
        return np.interp(log_scales + self.log_limit, self.log_scales, self.logits) - self.level


def _long_run_logit(model: LineModel, tenant: int) -> Logit:
    def logit(scale: float, requests: int, run: int) -> float:
        rates_rps, share = model.line.rates_rps(scale), 1.0
        if model.queue.utilisation(rates_rps) < 1:
            all_rps = sum(rates_rps)
            # On most load lines, a tenant's share of the requests is the same at all load factors,
            # except for rounding errors. The cache of `long_run` needs exactly equal shares, so
            # round the shares.
            shares = tuple(round(rate / all_rps, 9) for rate in rates_rps)
            share = model.long_run(shares, requests, run).late_share(tenant, all_rps)
        return float(np.log((share + 1e-6) / (1 - share + 1e-6)))

    return logit


def _crossing(logit: Callable[[float], float], level: float) -> float:
    """Return the load factor, with an error of at most 1 %, at which the rising function `logit`
    reaches `level`."""
    low, high = 1e-6, 1.0
    while logit(high) < level and high < 1e9:
        low, high = high, 2 * high
    for _ in range(30):
        middle = float(np.sqrt(low * high)) if low > 1e-6 else high / 2
        if logit(middle) > level:
            high = middle
        else:
            low = middle
        if high / low < 1.01:
            break
    return high
