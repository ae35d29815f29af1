"""The demand of a study: requests of each model, and conditions for its fleet.

The demand affects the tables, like the prices. Only one mix of a frontier is measured for it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from perseus.study.base import Different, Name, Part, Real, Whole
from perseus.study.recorded import Recorded, read_trace
from perseus.study.tenant import Tenant
from perseus.study.traces import TraceOf

Rate = Annotated[Real, Field(ge=0, le=1e9)]
Percentile = Annotated[Real, Field(ge=0, le=100)]
LEVELS: Final = ("low", "typical", "peak")
"""Names of the levels of a varying demand, in the order of their rates."""

ROUNDING: Final = 1e-6
"""Tolerance, in intervals, for times at the edge of an interval, since decimals have rounding
errors."""


class ModelDemand(Part):
    """The demand for one model, in one of three forms; requests have one image each."""

    name: Name = Field(description="A model of this study.", examples=["resnet50"])
    rps: Rate | None = Field(default=None, description="Requests/s, at all times.", examples=[20.0])
    low_rps: Rate | None = Field(
        default=None, description="Or three rates: requests/s in quiet hours,"
    )
    typical_rps: Rate | None = Field(default=None, description="in most hours,")
    peak_rps: Rate | None = Field(default=None, description="and when there are most.")
    trace: TraceOf | None = Field(
        default=None,
        description=(
            "Or a file of recorded requests, as of a day, or a mapping that selects a part of it:"
            " `interval_s` and `percentiles` define the three rates."
        ),
    )

    @property
    def levels_rps(self) -> tuple[float, ...] | None:
        """Return the rates at the three levels; None if a trace defines them or a rate is
        missing."""
        if self.rps is not None:
            return (self.rps,) * len(LEVELS)
        three = self.low_rps, self.typical_rps, self.peak_rps
        known = tuple(rate for rate in three if rate is not None)
        return known if len(known) == len(LEVELS) else None


class Spot(Part):
    """Servers at the spot price, which the cloud may revoke."""

    largest_share: Annotated[Real, Field(gt=0, le=1)] = Field(
        description="The largest share of each model's demand that spot servers may carry.",
        examples=[0.5],
    )
    revocations_per_hour: Annotated[Real, Field(ge=0, le=60)] = Field(
        description="How often each spot server is revoked, on average. The loss until its"
        " replacement is ready follows from the starts that an experiment `startup` measured.",
        examples=[0.05],
    )


class Demand(Part):
    """The demand for which to plan a fleet. Without it, the report shows costs over the demand."""

    models: Annotated[tuple[ModelDemand, ...], Field(min_length=1)] = Field(
        description="The demand for each model.",
        examples=[[{"name": "resnet50", "rps": 20.0}]],
    )
    percentiles: Annotated[tuple[Percentile, ...], Field(min_length=3, max_length=3)] = Field(
        default=(5.0, 50.0, 99.0),
        description=(
            "Percentiles of the low, typical and peak rates in traces, in any order: 99 means the"
            " rate which 99 % of the requests do not exceed. Requests count, not intervals, so"
            " that the plan covers the bursts of a model."
        ),
    )
    interval_s: Annotated[Real, Field(ge=1, le=86400)] = Field(
        default=60.0, description="Rates of traces are means over intervals of so many seconds."
    )
    headroom: Annotated[Real, Field(ge=0, lt=1)] = Field(
        default=0.0,
        description="Share of each server's capacity that stays free. Plans already use the"
        " lower limit of the capacity; this share comes on top.",
    )
    min_servers: Annotated[Whole, Field(ge=1, le=1000)] = Field(
        default=1,
        description="Least number of servers for each model, such as one per zone. Spot servers"
        " count; the table fleet_models says how many servers remain without them.",
    )
    servers: Annotated[tuple[Name, ...], Field(min_length=1), Different] | None = Field(
        default=None, description="Servers of this study that the fleet may use. Default, all."
    )
    spot: Spot | None = Field(
        default=None, description="Whether servers at the spot price may be bought. Default, none."
    )


def levels_rps(of: ModelDemand, demand: Demand, folder: Path) -> tuple[float, ...]:
    """Return requests/s at the three levels; the path of a trace's file is relative to `folder`.

    Raises OSError, and TraceError for a file that is no trace of arrivals.
    """
    if of.levels_rps is not None:
        return of.levels_rps
    assert of.trace is not None, "the checks ensure this"
    recorded = read_trace(folder / of.trace.file, of.trace).recorded
    rates_rps, requests = interval_rates_rps(recorded, demand.interval_s)
    return request_percentiles(rates_rps, requests, sorted(demand.percentiles))


def rate_shares(
    tenants: Sequence[Tenant], demand_rps: Mapping[str, Sequence[float]]
) -> tuple[float, ...]:
    """Return the share of all requests that each tenant gets at the typical level of the demand.

    The demand is in images by model. Tenants of one model share its demand equally. Empty if the
    demand does not name all models.
    """
    level, of_model = LEVELS.index("typical"), Counter(tenant.model for tenant in tenants)
    typical_rps = [
        demand_rps[tenant.model][level] / of_model[tenant.model] / tenant.request_batch_size
        for tenant in tenants
        if tenant.model in demand_rps
    ]
    if len(typical_rps) < len(tenants) or not all(typical_rps):
        return ()
    # Rounded, so that a demand that doubles as a whole needs no new measurement.
    return tuple(float(f"{rate_rps / sum(typical_rps):.9g}") for rate_rps in typical_rps)


def interval_rates_rps(
    recorded: Recorded, interval_s: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return requests/s and requests of each interval from the first arrival on.

    A trace that is shorter than an interval is one interval. A request at the end of an interval
    belongs to the next. Requests after the last whole interval have the rate of the last
    `interval_s`. With recorded counts, an interval consists of whole counting periods.
    """
    if recorded.interval_s:
        interval_s = recorded.interval_s * math.ceil(interval_s / recorded.interval_s)
    length_s = min(interval_s, recorded.length_s)
    whole = int(recorded.length_s / length_s + ROUNDING)
    number = (recorded.starts_s / length_s + ROUNDING).astype(int)
    requests = np.bincount(number, recorded.counts, whole).astype(np.int64)
    rates_rps = requests / length_s
    is_last = recorded.starts_s >= recorded.length_s - length_s
    rates_rps[whole:] = np.sum(recorded.counts[is_last]) / length_s
    return rates_rps, requests


def request_percentiles(
    rates_rps: NDArray[np.float64], requests: NDArray[np.int64], percentiles: Sequence[float]
) -> tuple[float, ...]:
    """Return, for each percentile p, the lowest rate that p % of the requests do not exceed.

    Percentiles over time would be 0 for a model with requests in few intervals, and the plan would
    have no server for it.
    """
    busy = requests > 0
    ascending = np.argsort(rates_rps[busy])
    counted = np.cumsum(requests[busy][ascending])
    found = np.searchsorted(counted, np.array(percentiles) / 100 * counted[-1])
    return tuple(rates_rps[busy][ascending][found].tolist())
