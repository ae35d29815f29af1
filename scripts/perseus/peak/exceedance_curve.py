"""The long-run exceedance of a virtual queue as a function of the load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from perseus.peak.line_model import LineModel
from perseus.peak.stats import Floats

MORE_RUNS = 6
"""Number of additional long runs at the limit of the virtual queue, for a smaller sampling
error."""

COARSE = 8
"""Divisor of the number of requests for a first, rough search of the limit."""

Logit = Callable[[float, int, int], float]
"""(scale, requests, run) -> logit of the share of late requests in a run of this length."""


@dataclass(frozen=True)
class ExceedanceCurve:
    """logit(long-run share of late requests) of the virtual queue over the logarithm of the load
    factor.

    At `log_limit`, it equals `level`, the logit of the allowed share.
    """

    log_scales: Floats
    logits: Floats
    log_limit: float
    level: float

    @classmethod
    def of(cls, model: LineModel, tenant: int, requests: int) -> ExceedanceCurve:
        """The curve of a tenant along the load line, from long runs with this many requests."""
        allowed = model.slas[tenant].allowed
        level = float(np.log(allowed / (1 - allowed)))
        logit = _long_run_logit(model, tenant)
        near = _crossing(lambda scale: logit(scale, requests // COARSE, 0), level)
        log_scales = np.log(near) + np.linspace(-0.6, 0.3, 16)
        logits = np.maximum.accumulate([logit(float(np.exp(x)), requests, 0) for x in log_scales])
        log_limit = float(np.interp(level, logits, log_scales))
        # All runs so far use the same random numbers.
        runs = [logit(float(np.exp(log_limit)), requests, run) for run in range(1, MORE_RUNS + 1)]
        slope = float(np.interp(log_limit, log_scales, np.gradient(logits, log_scales)))
        shift = float(np.mean([0, *(run - level for run in runs)])) / max(slope, 1.0)
        return cls(log_scales - shift, logits, log_limit - shift, level)

    def share(self, scale: float) -> float:
        return float(1 / (1 + np.exp(-np.interp(np.log(scale), self.log_scales, self.logits))))

    def above_level(self, log_scales: Floats) -> Floats:
        """logit - level at scales relative to the limit."""
        return np.interp(log_scales + self.log_limit, self.log_scales, self.logits) - self.level


def _long_run_logit(model: LineModel, tenant: int) -> Logit:
    def logit(scale: float, requests: int, run: int) -> float:
        rates_rps, share = model.line.rates_rps(scale), 1.0
        if model.queue.utilisation(rates_rps) < 1:
            all_rps = sum(rates_rps)
            # Rounded for the cache: along most lines all tenants keep their shares.
            shares = tuple(round(rate / all_rps, 9) for rate in rates_rps)
            share = model.long_run(shares, requests, run).late_share(tenant, all_rps)
        return float(np.log((share + 1e-6) / (1 - share + 1e-6)))

    return logit


def _crossing(logit: Callable[[float], float], level: float) -> float:
    """A scale, to 1 %, above which a rising `logit` exceeds `level`."""
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
