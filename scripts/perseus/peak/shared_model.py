"""Compute the limits of a simulated server that has the service times of the real server.

Saturation probes measure the throughputs of the busy server (`peak.paired`). From these
throughputs, the simulation computes the highest rates that keep the SLAs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from perseus.peak.line_model import LineModel
from perseus.peak.paired import (
    UNKNOWN_LIMITS,
    ModelLimits,
    Round,
    first_come_probability,
    ratio_at_saturation,
)
from perseus.peak.queue_limit import OF_EACH, Discipline, Precision, limit_scale
from perseus.peak.stats import Floats
from perseus.study.sla import Sla

FINE = Precision(requests=60_000, of_each=20_000, most=120_000, halvings=11)
"""Size of the simulations whose limits go into the result of a search. With this size, the sampling
error of the ratio of two limits is about 0.3 %."""

ROUGH = Precision(requests=15_000, of_each=5_000, most=30_000, halvings=9)
"""Size of the simulations during a search. With this size, the sampling error of a limit is about
1 %, and the computation of a limit takes one fifth of the time that FINE needs."""

LIKELY = 0.02
"""The module simulates a queueing discipline only if the server has this discipline with a
probability above this value."""


@dataclass(frozen=True)
class TenantWork:
    """A tenant of the simulated server: its SLA, its service times in seconds without other
    tenants, and the time in seconds that each of its requests spends outside the server."""

    sla: Sla
    work_s: Floats
    away_s: float


def model_limits(
    model: LineModel,
    works: Sequence[TenantWork],
    rounds: Sequence[Round],
    precision: Precision = FINE,
) -> ModelLimits:
    """Return the limits of the simulated server: for each tenant alone, and for all tenants
    together on the load line of `model`.

    `works` contains one entry per tenant, and `rounds` contains the rounds of saturation probes.
    For several tenants, one common factor multiplies all service times, so that the sharing ratio
    at saturation is the same in the simulation and in the rounds. All limits are NaN if a tenant
    with load has unknown service times, or would have fewer than OF_EACH requests in the
    simulation.
    """
    rates_rps = np.array(model.line.rates_rps(1.0))
    loaded = np.flatnonzero(rates_rps).tolist()
    fewest = precision.most * min(rates_rps[loaded]) / sum(rates_rps)
    if fewest < OF_EACH or not all(len(works[i].work_s) for i in loaded):
        return UNKNOWN_LIMITS
    alone_rps = [np.nan] * len(works)
    for i in loaded:
        alone_rps[i] = _limit(
            model, [works[i]], [i], lambda scale: [scale], Discipline.FIRST_COME, precision
        )
    if len(loaded) == 1:
        (only,) = loaded
        base, step = model.line.base_rps[only], model.line.direction_rps[only]
        rate = alone_rps[only]
        return ModelLimits(
            tuple(alone_rps), (rate - base) / step, 0.0, rate * works[only].work_s.mean()
        )
    slower = float(np.exp(-ratio_at_saturation(rounds).log))
    together = [works[i] for i in loaded]
    means_s = [float(each.work_s.mean()) if len(each.work_s) else np.nan for each in works]
    probability = first_come_probability(rounds, means_s)
    logs, weights = [], []
    for discipline, likely in (
        (Discipline.FIRST_COME, probability),
        (Discipline.PROCESSOR_SHARING, 1 - probability),
    ):
        if likely > LIKELY:
            scale = _limit(
                model,
                together,
                loaded,
                lambda scale: [model.line.rates_rps(scale)[i] for i in loaded],
                discipline,
                precision,
                slower,
            )
            logs.append(np.log(scale))
            weights.append(likely)
    mean = float(np.average(logs, weights=weights))
    error = float(np.sqrt(np.average((np.array(logs) - mean) ** 2, weights=weights)))
    rates = np.array(model.line.rates_rps(float(np.exp(mean))))[loaded]
    utilisation = float(rates @ [slower * each.work_s.mean() for each in together])
    return ModelLimits(tuple(alone_rps), float(np.exp(mean)), error, utilisation)


def _limit(
    model: LineModel,
    works: Sequence[TenantWork],
    loaded: Sequence[int],
    rates_rps: Callable[[float], Sequence[float]],
    discipline: Discipline,
    precision: Precision,
    slower: float = 1.0,
) -> float:
    """Return the limit of a simulated server as a load factor. `works` describes its tenants."""
    means_s = np.array([each.work_s.mean() for each in works])

    def utilisation(scale: float) -> float:
        return float(means_s @ np.array(rates_rps(scale)))

    idle = utilisation(0.0)
    # `utilisation` uses the service times of tenants alone. If tenants use different parts of the
    # server at the same time (slower < 1), the server carries a `utilisation` above 1.
    most = 1 / min(slower, 1.0)
    high = max(most - idle, 1e-3) / (utilisation(1.0) - idle)
    return limit_scale(
        works,
        rates_rps,
        model.arrivals,
        discipline,
        high=high,
        precision=precision,
        slower=slower,
        streams=loaded,
    )
