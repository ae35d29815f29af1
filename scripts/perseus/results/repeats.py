"""Combine the repeats of a search into one peak with its uncertainty (docs/explanation/repeats.md).

Each repeat is one cell that searches the peak of a load line. Random draws express the uncertainty
of the combined peak, which has two sources: the posterior distribution of each repeat, and the
variation between repeats. To get draws of the ratio of two peaks, divide draw d of one peak by draw
d of the other peak, for each d.

A repeat may find no limit of the server, for example because its limit is lower than in the other
repeats. The other repeats are then a biased selection. The interval of the peak therefore begins at
0, ends at infinity, or both.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from perseus.peak.between_repeats import DRAWS, limit_draws
from perseus.peak.outcome import Outcome
from perseus.peak.predicted.solo import limit_change, speed_change, usual_speed_rps
from perseus.peak.stats import TAIL, Floats, Interval
from perseus.results.records import PeakRecord
from perseus.study.experiments.peak import DEDICATED
from perseus.study.tasks.measure import MeasureTask

SERVER_COULD_NOT = (Outcome.INFEASIBLE, Outcome.FAILED, Outcome.UNSTEADY, Outcome.THROTTLED)
"""Outcomes that the server causes. If a repeat with one of these outcomes found no limit, its limit
may be lower than the limits of the other repeats, but not higher."""
WORST_FIRST = (
    Outcome.FAILED,
    Outcome.THROTTLED,
    Outcome.UNSTEADY,
    Outcome.DISTURBED,
    Outcome.CLIENT_LIMITED,
    Outcome.BLOCKED,
    Outcome.INFEASIBLE,
    Outcome.UNCERTIFIED,
    Outcome.PREDICTED,
    Outcome.OK,
)


@dataclass(frozen=True)
class Quantity:
    """A positive quantity with random draws of its value.

    If the quantity is unknown, the value is NaN and `draws` is empty. If `open_below` is true, the
    interval of the quantity begins at 0. If `open_above` is true, the interval ends at infinity.
    """

    value: float
    draws: Floats
    open_below: bool = False
    open_above: bool = False

    @property
    def is_known(self) -> bool:
        return len(self.draws) > 0

    def interval(self, tail: float = TAIL) -> Interval:
        """Return the interval between the quantiles `tail` and 1 - `tail` of the draws; NaN without
        draws."""
        if not self.is_known:
            return Interval(self.value, np.nan, np.nan)
        low, high = np.quantile(self.draws, [tail, 1 - tail])
        low, high = 0.0 if self.open_below else low, np.inf if self.open_above else high
        return Interval(self.value, float(low), float(high))

    def times(self, factor: float) -> Quantity:
        return replace(self, value=factor * self.value, draws=factor * self.draws)

    def dividing(self, by: float) -> Quantity:
        """Return the number `by` divided by this quantity."""
        return Quantity(by / self.value, by / self.draws, self.open_above, self.open_below)

    def over(self, other: Quantity) -> Quantity:
        """Return this quantity divided by the other quantity, draw by draw.

        If the interval of one of the quantities begins at 0 or ends at infinity, the interval of
        the quotient also begins at 0 or ends at infinity.
        """
        return Quantity(
            self.value / other.value,
            self.draws / other.draws,
            open_below=self.open_below or other.open_above,
            open_above=self.open_above or other.open_below,
        )


NOTHING = Quantity(np.nan, np.empty(0))
"""Quantity with an unknown value."""


@dataclass(frozen=True)
class RepeatedPeak:
    """Peak on a load line with T tenants, combined from all repeats.

    `scale` is the load factor at the peak, and `rates_rps` (T,) has the rates of the tenants at the
    peak. Both are means over the repeats that found a limit of the server, with draws `scale_draws`
    (draws,) and `rates_draws_rps` (draws, T). If no repeat found a limit, the means are NaN and the
    draws are empty.

    `correction` is the factor by which the module `results.paired` multiplied the load factor from
    the searches; 1 without a correction.
    """

    records: tuple[PeakRecord, ...]
    scale: float
    scale_draws: Floats
    rates_rps: Floats
    rates_draws_rps: Floats
    correction: float = 1.0

    @property
    def task(self) -> MeasureTask:
        """Task of the first repeat, for example to read the settings that all repeats have in
        common."""
        return self.records[0].task

    @property
    def tenants(self) -> list[str]:
        return self.task.tenant_names

    @property
    def loaded(self) -> NDArray[np.int64]:
        """Indices of the tenants with load; all tenants if the load is unknown."""
        return np.flatnonzero(self.rates_rps != 0)

    @property
    def images_per_request(self) -> Floats:
        """Number of images per request of each tenant, shape (T,)."""
        return np.array([float(tenant.request_batch_size) for tenant in self.task.tenants])

    @property
    def precision(self) -> str:
        """Numeric precision of the computation of the models. If this precision is unknown, the
        result is the configured precision.

        If the tenants have different precisions, the text has all of them, joined by " + ", without
        unknown precisions.
        """
        computed = self.records[0].computed_precisions
        found = (computed.get(each.name) or each.precision for each in self.task.tenants)
        return " + ".join(dict.fromkeys(filter(None, found)))

    @property
    def line(self) -> str:
        """Kind of the load line: "dedicated", "mix" or "hold"."""
        return self.records[0].run.line

    @property
    def is_dedicated(self) -> bool:
        return self.line == "dedicated"

    @property
    def is_known(self) -> bool:
        """True if a repeat found a limit of the server."""
        return len(self.scale_draws) > 0

    @property
    def is_infeasible(self) -> bool:
        """True if no repeat found a limit, and at least one repeat found that no rate keeps the
        SLAs."""
        return not self.is_known and any(
            record.outcome == Outcome.INFEASIBLE for record in self.records
        )

    @property
    def lost(self) -> list[PeakRecord]:
        """Repeats that found no limit of the server."""
        return [record for record in self.records if not record.has_limit]

    @property
    def open_below(self) -> bool:
        """True if the interval of the peak begins at 0, because a repeat that found no limit may
        have a lower limit than the other repeats."""
        return any(record.outcome != Outcome.CLIENT_LIMITED for record in self.lost)

    @property
    def open_above(self) -> bool:
        """True if the interval of the peak ends at infinity, because a repeat that found no limit
        may have a higher limit than the other repeats."""
        return any(record.outcome not in SERVER_COULD_NOT for record in self.lost)

    @property
    def point(self) -> Quantity:
        """Load factor at the estimated peak with its draws, as a quantity with an interval."""
        return Quantity(self.scale, self.scale_draws, self.open_below, self.open_above)

    def total(self, weights: Floats | float = 1.0) -> Quantity:
        """Return the sum over the tenants of (weight x rate at the peak). `weights` is one number
        for all tenants, or one number per tenant."""
        return Quantity(
            float((self.rates_rps * weights).sum()),
            (self.rates_draws_rps * weights).sum(axis=1),
            self.open_below,
            self.open_above,
        )

    @cached_property
    def speeds_rps(self) -> dict[str, float]:
        """Usual throughput of each tenant in the saturation probes in which only this tenant has
        load, requests/s; NaN if unknown."""
        with_limit = [each for each in self.records if each.has_limit]
        return {name: usual_speed_rps(with_limit, name) for name in self.tenants}

    def model_alone_rps(self, tenant: str) -> float:
        """Return the largest rate in requests/s at which the tenant keeps its SLA in a simulated
        queue without other tenants; NaN if unknown. The result is the mean over the repeats."""
        place = self.tenants.index(tenant)
        limits = [
            r.model.alone_rps[place] for r in self.records if r.has_limit and r.model.alone_rps
        ]
        return float(np.mean(limits)) if limits else np.nan

    @property
    def utilisation(self) -> float:
        """Utilisation of the server at a dedicated peak; NaN if unknown."""
        return float(self.rates_rps[0]) / self.speeds_rps[self.tenants[0]]

    @property
    def weights(self) -> tuple[int, ...]:
        """Weights of a mix, in the order of the tenants; empty if the load line is not a mix.

        If a mix has the proportions of the demand, its weights depend on the dedicated peaks. The
        weights are then empty if a dedicated peak is unknown.
        """
        return self.records[0].weights or self.records[0].run.weights

    @property
    def mix(self) -> str:
        """Description of the load line, for example "a 2 : 1 b"."""
        return self.mix_of(self.tenants)

    def mix_of(self, names: Sequence[str]) -> str:
        """Return the description of the load line with other names of its tenants, for example with
        names that do not contain the settings of a grid."""
        run = self.records[0].run
        if self.is_dedicated:
            return names[0] if run == DEDICATED else f"{names[0]} ({self.task.preset})"
        if run.rate_shares:
            shares = zip(names, run.rate_shares, strict=True)
            asked = " + ".join(f"{name} {100 * share:.3g} %" for name, share in shares)
            return f"{asked} of the demanded requests"
        if run.line == "mix" and len(names) == 2:
            return "{} {} : {} {}".format(names[0], *self.weights, names[1])
        if run.line == "mix":
            pairs = zip(names, self.weights, strict=True)
            return " : ".join(f"{name} {weight}" for name, weight in pairs if weight)
        constant = run.background_tenants(self.tenants)
        background = [n for n, own in zip(names, self.tenants, strict=True) if own in constant]
        others = " + ".join(name for name in names if name not in background)
        return f"{others} beside {' + '.join(background)} held at {run.background_at}"

    @property
    def verdict(self) -> str:
        """Verdict of the peak: the worst outcome of all repeats."""
        return min((record.outcome for record in self.records), key=WORST_FIRST.index)

    @property
    def reason(self) -> str:
        """Reason for a verdict other than "ok"."""
        worst = next(record for record in self.records if record.outcome == self.verdict)
        which = f"repeat {worst.task.repeat}: " if len(self.records) > 1 else ""
        return which + worst.reason if worst.reason else ""

    @property
    def certified(self) -> tuple[float, Floats]:
        """Lowest certified load factor of all repeats, and the rate of each tenant at this load
        factor in requests/s. Both are NaN if a repeat has no certified rate."""
        scales = [record.certified_scale for record in self.records]
        lowest = int(np.argmin(scales))  # NaN counts as the lowest value
        return scales[lowest], self.records[lowest].rates_rps(scales[lowest])

    @property
    def first_failing(self) -> tuple[float, float]:
        """Lowest load factor above the certified load factor at which a window of any repeat
        failed, and the total rate at this load factor in requests/s. Both are NaN without such a
        window."""
        failing = [(record.first_failing_scale, record) for record in self.records]
        found = [(s, float(r.rates_rps(s).sum())) for s, r in failing if not np.isnan(s)]
        return min(found, default=(np.nan, np.nan))


Dedicated = Mapping[tuple[str, str, str], RepeatedPeak]
"""Dedicated peaks, by the names of server, tenant and preset."""

Alone = Sequence[RepeatedPeak | None]
"""Dedicated peak of each tenant of a load line, in the order of the tenants; None if the study did
not measure it."""


def key(task: MeasureTask) -> tuple[str, str]:
    """Return the key that all repeats of a load line have in common: the names of scenario and load
    line."""
    return task.scenario, task.run.name


def combine(
    records: Sequence[PeakRecord],
    seed: int,
    draws: int = DRAWS,
    deviations: Floats | None = None,
) -> RepeatedPeak:
    """Combine the repeats of one load line into a peak.

    `draws` is the number of draws of the peak. `deviations` (draws,) has draws of a standard
    deviation: how much the logarithm of the peak varies between repeats. If `deviations` is None,
    the function estimates this standard deviation from the repeats of this load line.
    """
    task = records[0].task
    used = [record for record in records if record.has_limit]
    if used and used[0].outcome == Outcome.PREDICTED:
        used = used[:1]  # all predicted repeats of a load line are equal
    if not used:
        unknown = np.full(len(task.tenants), np.nan)
        return RepeatedPeak(
            tuple(records), np.nan, np.empty(0), unknown, np.empty((0, len(unknown)))
        )
    scales = np.array([record.estimate_scale for record in used])
    base = np.array([record.line.base_rps for record in used])
    direction = np.array([record.line.direction_rps for record in used])
    rng = np.random.default_rng([seed, zlib.crc32(f"{key(task)}".encode())])
    posteriors = [np.array(record.posterior_scales) for record in used]
    drawn = limit_draws(posteriors, rng, draws, deviations)
    return RepeatedPeak(
        records=tuple(records),
        scale=float(scales.mean()),
        scale_draws=drawn.mean(axis=1),
        rates_rps=(base + scales[:, None] * direction).mean(axis=0),
        rates_draws_rps=(base + drawn[:, :, None] * direction).mean(axis=1),
    )


def group(
    records: Sequence[PeakRecord],
    seed: int,
    draws: int = DRAWS,
    deviations: Floats | None = None,
) -> dict[tuple[str, str], RepeatedPeak]:
    """Return the combined peak of each load line (see `combine`), by its `key`. The load lines are
    in the order of their first records."""
    found: dict[tuple[str, str], list[PeakRecord]] = {}
    for record in records:
        found.setdefault(key(record.task), []).append(record)
    return {of: combine(repeats, seed, draws, deviations) for of, repeats in found.items()}


def dedicated_peaks(peaks: Sequence[RepeatedPeak]) -> Dedicated:
    """Return the dedicated peaks among `peaks`, by the names of server, tenant and preset."""
    alone = [peak for peak in peaks if peak.is_dedicated]
    return {(peak.task.server.name, peak.tenants[0], peak.task.preset): peak for peak in alone}


def each_alone(peak: RepeatedPeak, dedicated: Dedicated) -> Alone:
    """Return the dedicated peak of each tenant of a load line; None for a tenant without one. The
    dedicated peaks have the same server and the same preset as the load line."""
    server, preset = peak.task.server.name, peak.task.preset
    return [dedicated.get((server, tenant, preset)) for tenant in peak.tenants]


def known_peaks(peaks: Alone) -> list[RepeatedPeak]:
    """Return the peaks for which at least one repeat found a limit of the server."""
    return [each for each in peaks if each is not None and each.is_known]


def sharing_ratio(peak: RepeatedPeak, alone: Alone, weights: Floats | float = 1.0) -> Quantity:
    """Return the sharing ratio sum(w_i r_i / C_i) at the peak of a load line; NaN if a peak is
    unknown.

    Tenant i has the rate r_i at the peak of the load line, the dedicated peak C_i, and the weight
    w_i in `weights`. The speed of a host changes between cells. The function therefore converts
    each dedicated peak to the speed of the host in the cells of the load line (`capacities`).
    """
    loaded = peak.loaded
    known = known_peaks([alone[i] for i in loaded])
    if len(known) < len(loaded) or not peak.is_known:
        return NOTHING
    capacity, capacity_draws = capacities(peak, alone)
    taken = np.broadcast_to(weights, peak.rates_rps.shape)[loaded]
    return Quantity(
        float((taken * peak.rates_rps[loaded] / capacity).sum()),
        (taken * peak.rates_draws_rps[:, loaded] / capacity_draws).sum(axis=1),
        open_below=peak.open_below or any(each.open_above for each in known),
        open_above=peak.open_above or any(each.open_below for each in known),
    )


def capacities(peak: RepeatedPeak, alone: Alone) -> tuple[Floats, Floats]:
    """Return the dedicated peak of each tenant with load, converted to the speed that the host had
    in the cells of `peak`.

    The result has two arrays in requests/s: the estimates, shape (tenants with load,), and their
    draws, shape (draws, tenants with load). All these dedicated peaks must be known.
    """
    known = known_peaks([alone[i] for i in peak.loaded])
    changes = limit_changes(peak, known)
    rates = np.array([each.rates_rps[0] for each in known])
    return changes * rates, changes * np.column_stack([p.rates_draws_rps[:, 0] for p in known])


def speed_changes(peak: RepeatedPeak, alone: Sequence[RepeatedPeak]) -> Floats:
    """For each dedicated peak in `alone`, return (speed of the server in the cells of `peak` /
    speed of the server in the cells of the dedicated peak).

    The speed is the throughput in the saturation probes in which only the tenant of the dedicated
    peak has load.
    """
    named = [(each.tenants[0], each) for each in alone]
    return np.array([speed_change(peak.speeds_rps[n], each.speeds_rps[n]) for n, each in named])


def limit_changes(peak: RepeatedPeak, alone: Sequence[RepeatedPeak]) -> Floats:
    """For each dedicated peak in `alone`, return the factor that converts the dedicated peak to the
    speed that the host had in the cells of `peak`.

    The factor is (limit of the tenant alone in the cells of `peak` / limit of the tenant alone in
    the cells of the dedicated peak). Both limits come from a simulated queue with the service times
    of these cells. If a limit is unknown, the factor follows from the change of the server's speed
    (`speed_changes`) and the utilisation at the dedicated peak.
    """
    found = []
    for change, each in zip(speed_changes(peak, alone), alone, strict=True):
        now, then = peak.model_alone_rps(each.tenants[0]), each.model_alone_rps(each.tenants[0])
        by_model = now / then
        known = np.isfinite(by_model)
        found.append(by_model if known else limit_change(change, each.utilisation))
    return np.array(found)
