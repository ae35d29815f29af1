"""Derive operating points from peaks: the measured capacity of one server, and its price."""

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
"""Quantile of the capacity that plans use as lower limit: a server carries more than its lower
limit with a probability of 95 %. With the estimates instead, planned fleets would be too small,
since the cheapest fleet tends to have the servers whose capacity is overestimated."""


@dataclass(frozen=True)
class OperatingPoint:
    """Rates that one server carries within the SLAs of all its models.

    The server also carries lower rates. Models without load are left out, because the server does
    not serve them.

    Three fields have a rate for each model, in requests/s of one image each: `rates_rps` is the
    estimate, `lower_rps` is the lower limit for plans, and `draws_rps` has joint draws with other
    operating points, shape (draws,). `usd_per_hour` has one price for each pricing (on demand,
    spot). `speed_changes` (loaded tenants,) is the speed of the host in this cell divided by its
    speed in the dedicated cell of each tenant. `limit_changes` (loaded tenants,) has the factors by
    which these changes of speed change the dedicated peaks. All rates are already divided by
    `limit_changes`.
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
        """Return this operating point with lower rates, so that the share `headroom` of its
        capacity stays free."""
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
    """Return the operating points (rates that one server carries) of all peaks whose lower limit is
    known and whose server has a price.

    `prices` has the prices of each server. The function corrects the rates of shared servers to the
    speed of the host in the dedicated cells, so that shared and dedicated fleets are comparable.
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
    """Return, for each model, the sum of the values of its tenants. The first axis of `values` is
    the tenants."""
    names = np.array(models)
    return {model: values[names == model].sum(axis=0) for model in dict.fromkeys(models)}


def of_models(points: Sequence[OperatingPoint], models: Sequence[str]) -> Iterator[OperatingPoint]:
    """Yield the operating points that serve at least one of these models and no other model."""
    return (point for point in points if set(point.models) <= set(models))
