"""Define five prediction models, which predict the sharing ratio of a mix without a measurement of
this mix.

The sharing ratio is the sum of rate / dedicated peak over all tenants, at the limit of the mix.
Every prediction model needs measurements of each tenant alone. Some prediction models also need
measurements of other mixes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from perseus.peak.exceedance_curve import ExceedanceCurve
from perseus.peak.line_model import LineModel
from perseus.peak.load_line import LoadLine
from perseus.peak.predicted.solo import Solo
from perseus.peak.queue_limit import OF_EACH, Discipline, Precision, limit_scale
from perseus.peak.stats import Floats
from perseus.peak.virtual_queue import VirtualQueue
from perseus.traffic.arrivals import Arrivals

REQUESTS = 20_000
"""Number of requests in a simulation of the virtual queue. With this number, the sampling error of
the simulated limit is about 1 %, less than the error of a measured limit."""


COARSE = Precision(requests=10_000, of_each=1_000, most=40_000, halvings=8)
"""Size of a simulation of processor sharing. With this size, the error of the simulated limit is at
most 1 %."""


class LadderStep(StrEnum):
    """The prediction models, from the simplest to the most complex."""

    UTILISATION = "B0"
    SHARES = "B1"
    QUEUE = "B2"
    MEMORY = "B3"
    PROCESSOR = "B4"

    @property
    def description(self) -> str:
        """Return the assumption of the prediction model about the limit of a mix."""
        return {
            LadderStep.UTILISATION: "utilisations add up to 1",
            LadderStep.SHARES: "the sharing ratio is the same for all mixes",
            LadderStep.QUEUE: "a first-come first-served queue",
            LadderStep.MEMORY: "a first-come first-served queue, with caches",
            LadderStep.PROCESSOR: "a constant times the limit of processor sharing",
        }[self]


@dataclass(frozen=True)
class Shared:
    """A mix on a shared server: the tenants, and the share of each tenant in the mix.

    The shares add up to 1. At load factor 1, the rate of a tenant is its share times its dedicated
    peak. `arrivals` is the arrival process of all tenants, None if it is unknown.
    """

    solos: tuple[Solo, ...]
    shares: tuple[float, ...]
    arrivals: Arrivals | None

    @classmethod
    def of(cls, solos: Sequence[Solo], weights: Sequence[int], arrivals: Arrivals | None) -> Shared:
        """Return the mix with these weights, without tenants of weight 0."""
        loaded = [(solo, weight) for solo, weight in zip(solos, weights, strict=True) if weight]
        shares = tuple(weight / sum(weights) for _, weight in loaded)
        return cls(tuple(solo for solo, _ in loaded), shares, arrivals)

    @cached_property
    def models(self) -> frozenset[str]:
        return frozenset(solo.model for solo in self.solos)

    @cached_property
    def is_of_copies(self) -> bool:
        """Return whether all tenants have the same model."""
        return len(self.models) == 1

    @property
    def rates_rps(self) -> tuple[float, ...]:
        """Return the rate of each tenant in requests/s at load factor 1."""
        pairs = zip(self.shares, self.solos, strict=True)
        return tuple(share * solo.peak_rps for share, solo in pairs)

    @property
    def of_utilisation(self) -> float:
        """Return the sharing ratio of the load at which the utilisations of the tenants add up to
        1."""
        return float(1 / np.dot(self.shares, [solo.utilisation for solo in self.solos]))

    @cached_property
    def of_queue(self) -> float:
        """Return the sharing ratio above which a simulated first-come first-served queue misses an
        SLA. In the simulation, each tenant has the service times that it has alone."""
        return self.of_slowed_queue(np.ones(len(self.solos)))

    def of_slowed_queue(self, slowdowns: Floats) -> float:
        """Return the sharing ratio above which a simulated first-come first-served queue misses an
        SLA, if sharing lengthens the service times.

        `slowdowns`, shape (tenants,), contains the factor that multiplies each tenant's service
        times. The result is NaN in three cases: a factor or a service time is unknown, the arrival
        process is unknown, or a tenant would have fewer than OF_EACH requests in the simulation.
        """
        if not (self._can_be_simulated and np.all(np.isfinite(slowdowns))):
            return np.nan
        factors = tuple(slowdowns.round(4).tolist())
        if factors not in self._slowed:
            self._slowed[factors] = self._queue_limit(factors)
        return self._slowed[factors]

    @cached_property
    def _slowed(self) -> dict[tuple[float, ...], float]:
        """Cache of the simulated limits. The keys are the factors `slowdowns`. Several prediction
        models need the same limits."""
        return {}

    @property
    def _can_be_simulated(self) -> bool:
        is_seen = self.arrivals is not None and all(len(solo.work_s) for solo in self.solos)
        return is_seen and REQUESTS * min(self.rates_rps) / sum(self.rates_rps) >= OF_EACH

    def _queue_limit(self, slowdowns: tuple[float, ...]) -> float:
        assert self.arrivals is not None
        queue = VirtualQueue(
            work_s=tuple(s.work_s * by for s, by in zip(self.solos, slowdowns, strict=True)),
            spare_s=tuple(max(s.sla.latency_ms / 1000 - s.away_s, 0.0) for s in self.solos),
            observed=True,
        )
        line = LoadLine((0.0,) * len(self.solos), self.rates_rps)
        model = LineModel(line, tuple(s.sla for s in self.solos), self.arrivals, queue)
        curves = (ExceedanceCurve.of(model, i, REQUESTS) for i in range(len(self.solos)))
        return float(np.exp(min(curve.log_limit for curve in curves)))

    @cached_property
    def of_processor(self) -> float:
        """Return the sharing ratio above which a simulated server with processor sharing misses an
        SLA; NaN if the mix cannot be simulated."""
        if self.arrivals is None or not self._can_be_simulated:
            return np.nan
        return limit_scale(
            self.solos,
            lambda scale: [scale * rate for rate in self.rates_rps],
            self.arrivals,
            Discipline.PROCESSOR_SHARING,
            high=self.of_utilisation,
            precision=COARSE,
        )

    @property
    def after_others(self) -> Floats:
        """Return, for each tenant, the mean share of its data that is missing from the processor's
        caches at the start of its request; shape (tenants,).

        The function assumes that only the previous request has evicted data. A request of another
        tenant evicts as many bytes as it accesses, and a request of the same tenant evicts nothing.
        The probability that the previous request belongs to a tenant is proportional to the rate of
        this tenant.
        """
        rates = np.array(self.rates_rps)
        memory = np.array([solo.memory_bytes for solo in self.solos])
        driven_out = np.minimum(memory[None, :] / memory[:, None], 1)
        # After a request of the same tenant, the caches still contain its data.
        np.fill_diagonal(driven_out, 0)
        part: Floats = driven_out @ (rates / rates.sum())
        return part


@dataclass(frozen=True)
class Known:
    """A mix with a measured sharing ratio.

    `noise` is the standard deviation of log(ratio), computed from the interval of the ratio. If the
    ratio is exact, `noise` is 0.
    """

    shared: Shared
    ratio: float
    noise: float = 0.0


def predicted(step: LadderStep, shared: Shared, known: Sequence[Known]) -> float:
    """Return the sharing ratio that the prediction model `step` predicts for the mix `shared`; NaN
    if data are missing. `known` contains the other measured mixes."""
    return _OF_STEP[step](shared, known)


def _of_utilisation(shared: Shared, known: Sequence[Known]) -> float:
    return shared.of_utilisation


def _of_shares(shared: Shared, known: Sequence[Known]) -> float:
    """Predict that the mix has the median sharing ratio of the measured mixes of different
    models."""
    ratios = [each.ratio for each in known if not each.shared.is_of_copies]
    return float(np.median(ratios)) if ratios else np.nan


def _of_queue(shared: Shared, known: Sequence[Known]) -> float:
    return shared.of_queue


def _of_memory(shared: Shared, known: Sequence[Known]) -> float:
    """Return the sharing ratio of a simulated queue in which a request takes longer if other
    tenants have evicted the data of its tenant from the caches.

    Measured mixes of copies of one model show by what factor evictions lengthen the service times.
    """
    return shared.of_slowed_queue(1 + _beside_copies(shared, known) * shared.after_others)


def _of_processor(shared: Shared, known: Sequence[Known]) -> float:
    """Return the simulated sharing ratio under processor sharing, multiplied by a correction. The
    correction is the median of (measured ratio / simulated ratio) over the mixes of different
    models in `known`."""
    parts = [
        each.ratio / each.shared.of_processor for each in known if not each.shared.is_of_copies
    ]
    told = [part for part in parts if np.isfinite(part)]
    return shared.of_processor * float(np.median(told)) if told else np.nan


def _beside_copies(shared: Shared, known: Sequence[Known]) -> Floats:
    """Return, for each tenant, the relative increase of the service time if all its data are
    missing from the caches; shape (tenants,).

    The increase for a model comes from measured mixes of copies of this model. The lower the
    measured sharing ratio is, compared to a simulated queue without evictions, the larger is the
    increase. The increase is at least 0. For a model without a measured mix of copies, the function
    uses the mean increase of the other models. If no mix of copies was measured at all, the result
    is NaN.
    """
    excess: dict[str, list[float]] = {}
    for each in known:
        if each.shared.is_of_copies and len(each.shared.solos) > 1:
            (model,) = each.shared.models
            # The limit of a queue is nearly proportional to 1 / service time.
            longer = max(each.shared.of_queue / each.ratio - 1, 0.0)
            excess.setdefault(model, []).append(longer / float(each.shared.after_others.mean()))
    mean = {model: float(np.mean(values)) for model, values in excess.items()}
    usual = float(np.mean(list(mean.values()))) if mean else np.nan
    return np.array([mean.get(solo.model, usual) for solo in shared.solos])


_OF_STEP: Mapping[LadderStep, Callable[[Shared, Sequence[Known]], float]] = {
    LadderStep.UTILISATION: _of_utilisation,
    LadderStep.SHARES: _of_shares,
    LadderStep.QUEUE: _of_queue,
    LadderStep.MEMORY: _of_memory,
    LadderStep.PROCESSOR: _of_processor,
}
