"""Derive operating points from measured peaks. An operating point has the rates that one server
carries at the same time, and the price of the server."""

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
"""The lower limit of a capacity is this quantile of its draws: the capacity is higher with a
probability of 95 %. Plans use lower limits. With estimates, planned fleets would be too small,
because the cheapest fleet tends to have the servers whose capacity Perseus overestimates."""


@dataclass(frozen=True)
class OperatingPoint:
    """Rates that one server carries at the same time, within the SLAs of all its models.

    `rates_rps` has the estimated rate of each model with load, in requests/s of one image each.
    Plans use `lower_rps`, the lower limit of this rate. `draws_rps` has draws of this rate, shape
    (draws,). The draws of all operating points with the same index form one joint draw.
    `usd_per_hour` has the price of the server for each kind of price (on_demand, spot).

    The other two fields have one factor for each tenant with load. `speed_changes` is (speed of the
    host in the cells of `peak` / speed of the host in the cells of the tenant's dedicated peak).
    `limit_changes` is the factor by which this change of speed changes the dedicated peak. The
    rates above are already divided by `limit_changes`, so these rates refer to the speed of the
    host in the cells of the dedicated peaks.
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
        """Return this operating point with all rates multiplied by 1 - `headroom`. A plan that uses
        the result leaves the share `headroom` of the server's capacity free."""
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
    """Return the operating points of all known peaks whose interval does not begin at 0, and whose
    server has a price.

    `prices` has the price of each server, by its name. The function converts the rates of shared
    servers to the speed that the host had in the cells of the dedicated peaks. The costs of shared
    and dedicated servers are then comparable.
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
    """For each model, return the sum of the values of all tenants with this model.

    The first axis of `values` has one entry per tenant, and `models` has the model of each tenant.
    """
    names = np.array(models)
    return {model: values[names == model].sum(axis=0) for model in dict.fromkeys(models)}


def of_models(points: Sequence[OperatingPoint], models: Sequence[str]) -> Iterator[OperatingPoint]:
    """Yield the operating points whose models are all among `models`."""
    return (point for point in points if set(point.models) <= set(models))
