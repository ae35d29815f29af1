"""Define the section `demand` of a configuration: the requests/s that the models get in production,
and conditions for the fleet (the servers that carry this demand).

The demand affects the tables about fleets. The demand changes a measurement in one case only: an
experiment `frontier` of three or more tenants also measures the mix in the ratio of the typical
rates.
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
"""Names of the three levels of a varying demand, in ascending order of their rates."""

ROUNDING: Final = 1e-6
"""If an arrival is before the end of an interval by less than this share of the interval, Perseus
assumes a rounding error, and counts the arrival in the next interval."""


class ModelDemand(Part):
    """The demand for one model, as one rate, as three rates or as a trace. Each request of the
    demand has one image."""

    name: Name = Field(description="The name of a model of this study.", examples=["resnet50"])
    rps: Rate | None = Field(
        default=None,
        description=(
            "A constant rate in requests/s, in place of three rates (`low_rps`, `typical_rps`,"
            " `peak_rps`) or a `trace`. Each request has one image. If your clients send several"
            " images in each request, multiply the rate by the number of images."
        ),
        examples=[20.0],
    )
    low_rps: Rate | None = Field(
        default=None,
        description="Requests/s in hours of low demand. Needs `typical_rps` and `peak_rps` too.",
    )
    typical_rps: Rate | None = Field(
        default=None,
        description="Requests/s in most hours. Needs `low_rps` and `peak_rps` too.",
    )
    peak_rps: Rate | None = Field(
        default=None,
        description="Requests/s in hours of peak demand. Needs `low_rps` and `typical_rps` too.",
    )
    trace: TraceOf | None = Field(
        default=None,
        description=(
            "A file of recorded requests, for example of one day, or a mapping that selects a part"
            " of the file, in place of rates. Perseus computes the low, typical and peak rate from"
            " this file, as `demand.interval_s` and `demand.percentiles` define."
        ),
    )

    @property
    def levels_rps(self) -> tuple[float, ...] | None:
        """The low, typical and peak rate in requests/s; None if the rates come from a trace, or if
        one of the three rates is missing."""
        if self.rps is not None:
            return (self.rps,) * len(LEVELS)
        three = self.low_rps, self.typical_rps, self.peak_rps
        known = tuple(rate for rate in three if rate is not None)
        return known if len(known) == len(LEVELS) else None


class Spot(Part):
    """Conditions for spot servers: cheap servers that the cloud may revoke at any time."""

    largest_share: Annotated[Real, Field(gt=0, le=1)] = Field(
        description="The largest share (0 to 1) of a model's demand that spot servers may carry.",
        examples=[0.5],
    )
    revocations_per_hour: Annotated[Real, Field(ge=0, le=60)] = Field(
        description=(
            "How many times per hour the cloud revokes one spot server, on average. From this"
            " number and the start time of a server (experiment `startup`), Perseus computes the"
            " share of the demand that is lost until replacement servers are ready."
        ),
        examples=[0.05],
    )


class Demand(Part):
    """The demand for which Perseus plans a fleet. Without a section `demand`, the report shows how
    the costs grow with the demand."""

    models: Annotated[tuple[ModelDemand, ...], Field(min_length=1)] = Field(
        description="The demand for each model.",
        examples=[[{"name": "resnet50", "rps": 20.0}]],
    )
    percentiles: Annotated[tuple[Percentile, ...], Field(min_length=3, max_length=3)] = Field(
        default=(5.0, 50.0, 99.0),
        description=(
            "Three percentiles, in any order, that define the low, typical and peak rate of a"
            " trace. Perseus divides the trace into intervals of `interval_s` seconds, each with"
            " its mean rate. The 99th percentile is the lowest rate r such that at least 99 % of"
            " the requests arrive in intervals with a rate of at most r. Because Perseus counts"
            " requests and not intervals, a short burst with many requests raises the peak rate."
        ),
    )
    interval_s: Annotated[Real, Field(ge=1, le=86400)] = Field(
        default=60.0,
        description=(
            "The length of the intervals of a trace, in seconds. Perseus computes the mean rate of"
            " each interval."
        ),
    )
    headroom: Annotated[Real, Field(ge=0, lt=1)] = Field(
        default=0.0,
        description=(
            "The share (0 to 1) of the capacity of each server that the fleet leaves free. As the"
            " capacity, Perseus uses a lower limit that the true capacity exceeds with a"
            " probability of 95 %."
        ),
    )
    min_servers: Annotated[Whole, Field(ge=1, le=1000)] = Field(
        default=1,
        description=(
            "The smallest number of servers that must serve each model, for example 3 for one"
            " server in each of three zones. Spot servers count too. The table `fleet_models`"
            " states how many servers of a model remain if the cloud revokes all spot servers."
        ),
    )
    servers: Annotated[tuple[Name, ...], Field(min_length=1), Different] | None = Field(
        default=None,
        description="The servers of this study that the fleet may use. Default: all servers.",
    )
    spot: Spot | None = Field(
        default=None,
        description=(
            "Conditions under which the fleet may use servers at the spot price. Default: no spot"
            " servers."
        ),
    )


def levels_rps(of: ModelDemand, demand: Demand, folder: Path) -> tuple[float, ...]:
    """Return the low, typical and peak rate of the demand for one model, in requests/s.

    The rates come from the configuration or from a trace file. The path of the trace file is
    relative to `folder`. Raises OSError if the trace file cannot be read, and TraceError if Perseus
    finds no arrival times in it.
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
    """Return each tenant's share (0 to 1) of all requests at the typical rates of the demand.

    An experiment `frontier` measures the mix with these shares. `demand_rps` contains the images/s
    of each model at the three levels of the demand. Tenants with the same model share the demand
    for this model equally. The result is empty if the demand leaves out the model of a tenant, or
    states a typical rate of 0 for it.
    """
    level, of_model = LEVELS.index("typical"), Counter(tenant.model for tenant in tenants)
    typical_rps = [
        demand_rps[tenant.model][level] / of_model[tenant.model] / tenant.request_batch_size
        for tenant in tenants
        if tenant.model in demand_rps
    ]
    if len(typical_rps) < len(tenants) or not all(typical_rps):
        return ()
    # If all rates change by the same factor, the shares change only by a floating-point error.
    # Without rounding, this error would repeat a measurement.
    return tuple(float(f"{rate_rps / sum(typical_rps):.9g}") for rate_rps in typical_rps)


def interval_rates_rps(
    recorded: Recorded, interval_s: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the rate in requests/s and the number of requests for each interval of a trace.

    The first interval begins at the first arrival. Each interval has `interval_s` seconds. If the
    trace contains counts of requests per period (such as a minute), the function rounds
    `interval_s` up to whole periods. If the trace is shorter than `interval_s`, it is one interval.
    A request exactly at the end of an interval belongs to the next interval. The last interval may
    be shorter than the others. Its rate is then the mean rate in the last `interval_s` seconds of
    the trace.
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
    """Return percentiles of the rate that count requests, not intervals.

    The p-th percentile is the lowest rate r such that at least p % of the requests arrive in
    intervals with a rate of at most r. Intervals without requests have no effect. `rates_rps` and
    `requests` contain the rate and the number of requests of each interval.
    """
    busy = requests > 0
    ascending = np.argsort(rates_rps[busy])
    counted = np.cumsum(requests[busy][ascending])
    found = np.searchsorted(counted, np.array(percentiles) / 100 * counted[-1])
    return tuple(rates_rps[busy][ascending][found].tolist())
