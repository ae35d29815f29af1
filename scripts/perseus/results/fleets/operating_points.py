"""Derive operating points (the rates that one server carries, with its price) from measured
peaks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perseus.peak.stats import Floats
from perseus.results.repeats import (
    Alone,
    RepeatedPeak,
    dedicated_peaks,
    each_alone,
    known_peaks,
    limit_changes,
    speed_changes,
)
from perseus.study.tasks.tables import Price

LOWER = 0.05
"""Plans use this quantile of a server's capacity as its lower limit: a server carries more than its
lower limit with a probability of 95 %. With estimates instead of lower limits, planned fleets would
be too small, because the cheapest fleet tends to have the servers whose capacity is
overestimated."""


@dataclass(frozen=True)
class OperatingPoint:
    """Rates that one server carries within the SLAs of all its models.

    The server also carries lower rates. The fields do not contain models without load.

    `rates_rps` has the estimated rate of each model, in requests/s of one image each. Plans use
    `lower_rps`, which has the lower limit of the rate of each model. For each model, `draws_rps`
    has draws of the rate, shape (draws,). The draws with the same index of all operating points
    form one joint sample. `usd_per_hour` has one price for each pricing (on demand, spot). For each
    tenant with load, `speed_changes` has the speed of the host in the cells of `peak` divided by
    its speed in the cells of the tenant's dedicated peak. `limit_changes` has one factor for each
    tenant with load. If the speed of the host changes by the factor in `speed_changes`, the
    dedicated peak of the tenant changes by the factor in `limit_changes`. All rates are already
    divided by `limit_changes`.
    """

    peak: RepeatedPeak
    rates_rps: Mapping[str, float]
    lower_rps: Mapping[str, float]
    draws_rps: Mapping[str, Floats]
    usd_per_hour: Mapping[str, float]
    speed_changes: Floats
    limit_changes: Floats

    @property
    def server(self) -> str:
        return self.peak.task.server.name

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self.rates_rps)

    @property
    def is_shared(self) -> bool:
        return not self.peak.is_dedicated

    def leaving(self, headroom: float) -> OperatingPoint:
        """Return this operating point with all rates multiplied by 1 - `headroom`, so that the
        share `headroom` of the server's capacity stays free."""
        used = 1 - headroom
        return replace(
            self,
            rates_rps={model: used * rps for model, rps in self.rates_rps.items()},
            lower_rps={model: used * rps for model, rps in self.lower_rps.items()},
            draws_rps={model: used * rps for model, rps in self.draws_rps.items()},
        )


def operating_points(
    peaks: Sequence[RepeatedPeak], prices: Mapping[str, Price]
) -> tuple[OperatingPoint, ...]:
    """Return the operating points (rates that one server carries) of all peaks that have a lower
    limit above 0 and a server with a price.

    `prices` has the prices by server. To make the costs of shared and dedicated fleets comparable,
    the function converts the rates of shared servers to the speed that the host had in the
    dedicated cells.
    """
    dedicated = dedicated_peaks(peaks)
    return tuple(
        _point(peak, each_alone(peak, dedicated), prices[peak.task.server.name])
        for peak in peaks
        if peak.is_known and not peak.open_below and peak.task.server.name in prices
    )


def _point(peak: RepeatedPeak, alone: Alone, price: Price) -> OperatingPoint:
    loaded = peak.loaded
    known = known_peaks([alone[i] for i in loaded])
    of_speed, of_limits = (
        each(peak, known) if len(known) == len(loaded) else np.ones(len(loaded))
        for each in (speed_changes, limit_changes)
    )
    images = peak.images_per_request[loaded] / of_limits
    draws = peak.rates_draws_rps[:, loaded] * images
    models = [peak.task.tenants[i].model for i in loaded]
    priced = ((pricing, price.usd_per_hour(pricing)) for pricing in ("on_demand", "spot"))
    return OperatingPoint(
        peak,
        rates_rps=_by_model(models, peak.rates_rps[loaded] * images),
        lower_rps=_by_model(models, np.quantile(draws, LOWER, axis=0)),
        draws_rps=_by_model(models, draws.T),
        usd_per_hour={pricing: usd for pricing, usd in priced if usd is not None},
        speed_changes=of_speed,
        limit_changes=of_limits,
    )


def _by_model(models: Sequence[str], values: Floats) -> dict[str, Any]:
    """For each model, return the sum of the values of its tenants. The first axis of `values` has
    one entry per tenant."""
    names = np.array(models)
    return {model: values[names == model].sum(axis=0) for model in dict.fromkeys(models)}


def of_models(points: Sequence[OperatingPoint], models: Sequence[str]) -> Iterator[OperatingPoint]:
    """Yield the operating points whose models are all among `models`."""
    return (point for point in points if set(point.models) <= set(models))
