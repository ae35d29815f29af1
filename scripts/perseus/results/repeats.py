"""The repeats of a search combined, with their uncertainty (docs/method.md, "Sharing, cost and
saving").

A load line is searched by one cell per repeat. The uncertainty of its peak is a hierarchical
bootstrap: repeats are resampled, and of each the limit from the posterior of its estimate. Draw d
of one peak goes with draw d of every other, so that ratios of peaks are resampled jointly.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perseus.peak.stats import Floats, Interval
from perseus.results.records import PeakRecord
from perseus.study.tasks.measure import MeasureTask

DRAWS = 2000
CONFIDENCE = 0.95
TAIL = (1 - CONFIDENCE) / 2
WORST_FIRST = ("failed", "unsteady", "disturbed", "client_limited", "infeasible", "uncertified", "ok")


@dataclass(frozen=True)
class RepeatedPeak:
    """The peak on a load line with T tenants, from all its repeats.

    `scale` and `rates_rps` (T,) are the means of the repeats that found a limit of the server, NaN
    if none did; `scale_draws` (draws,) and `rates_draws_rps` (draws, T) are then empty.
    """

    records: tuple[PeakRecord, ...]
    scale: float
    scale_draws: Floats
    rates_rps: Floats
    rates_draws_rps: Floats

    @property
    def task(self) -> MeasureTask:
        """That of its first repeat."""
        return self.records[0].task

    @property
    def tenants(self) -> list[str]:
        return self.task.tenant_names

    @property
    def images_per_request(self) -> Floats:
        """Of each tenant, shape (T,)."""
        return np.array([float(tenant.request_batch_size) for tenant in self.task.tenants])

    @property
    def line(self) -> str:
        """The kind of its load line: "dedicated", "mix" or "hold"."""
        return self.records[0].run.line

    @property
    def is_dedicated(self) -> bool:
        return self.line == "dedicated"

    @property
    def is_known(self) -> bool:
        """Whether a repeat found a limit of the server."""
        return len(self.scale_draws) > 0

    @property
    def mix(self) -> str:
        """The load line in words; weights and percentages are of dedicated peaks."""
        run, names = self.records[0].run, self.tenants
        if self.is_dedicated:
            return names[0]
        if run.line == "mix" and len(names) == 2:
            return "{} {} : {} {}".format(names[0], *run.weights, names[1])
        if run.line == "mix":
            pairs = zip(names, run.weights, strict=True)
            return " : ".join(f"{name} {weight}" for name, weight in pairs)
        others = " + ".join(name for name in names if name != run.held)
        return f"{others} beside {run.held} held at {run.held_percent} %"

    @property
    def verdict(self) -> str:
        """The worst outcome of its repeats."""
        return min((record.outcome for record in self.records), key=WORST_FIRST.index)

    @property
    def reason(self) -> str:
        """Why, if its verdict is not "ok"."""
        worst = next(record for record in self.records if record.outcome == self.verdict)
        which = f"repeat {worst.task.repeat}: " if len(self.records) > 1 else ""
        return which + worst.reason if worst.reason else ""

    @property
    def certified(self) -> tuple[float, Floats]:
        """The smallest certified scale of its repeats and the rates there; NaN if one has none."""
        scales = [record.certified_scale for record in self.records]
        lowest = int(np.argmin(scales))  # NaN counts as lowest
        return scales[lowest], self.records[lowest].rates_rps(scales[lowest])

    @property
    def first_failing(self) -> tuple[float, float]:
        """The smallest scale that failed above the certified one of its repeat; its total rate."""
        failing = [(record.first_failing_scale, record) for record in self.records]
        found = [(s, float(r.rates_rps(s).sum())) for s, r in failing if not np.isnan(s)]
        return min(found, default=(np.nan, np.nan))


Dedicated = Mapping[tuple[str, str], RepeatedPeak]
"""Dedicated peaks by the names of server and tenant."""


def key(task: MeasureTask) -> tuple[str, str]:
    """What the repeats of one load line have in common."""
    return task.scenario, task.run.name


def combine(records: Sequence[PeakRecord], seed: int, draws: int = DRAWS) -> RepeatedPeak:
    """The repeats of one load line, resampled with a stream of its own."""
    task = records[0].task
    used = [record for record in records if record.has_limit]
    if not used:
        nothing = np.full(len(task.tenants), np.nan)
        return RepeatedPeak(
            tuple(records), np.nan, np.empty(0), nothing, np.empty((0, len(nothing)))
        )
    scales = np.array([record.estimate_scale for record in used])
    base = np.array([record.line.base_rps for record in used])
    direction = np.array([record.line.direction_rps for record in used])
    rng = np.random.default_rng([seed, zlib.crc32(f"{key(task)}".encode())])
    repeats = rng.integers(0, len(used), (draws, len(used)))
    picked = np.empty(repeats.shape)
    for i, record in enumerate(used):
        chosen = repeats == i
        picked[chosen] = rng.choice(record.posterior_scales, int(chosen.sum()))
    return RepeatedPeak(
        records=tuple(records),
        scale=float(scales.mean()),
        scale_draws=picked.mean(axis=1),
        rates_rps=(base + scales[:, None] * direction).mean(axis=0),
        rates_draws_rps=(base[repeats] + picked[:, :, None] * direction[repeats]).mean(axis=1),
    )


def group(
    records: Sequence[PeakRecord], seed: int, draws: int = DRAWS
) -> dict[tuple[str, str], RepeatedPeak]:
    """All peaks by `key`, in the order in which their load lines first appear."""
    found: dict[tuple[str, str], list[PeakRecord]] = {}
    for record in records:
        found.setdefault(key(record.task), []).append(record)
    return {of: combine(repeats, seed, draws) for of, repeats in found.items()}


def dedicated_peaks(peaks: Sequence[RepeatedPeak]) -> Dedicated:
    """Those of one tenant alone."""
    alone = [peak for peak in peaks if peak.is_dedicated]
    return {(peak.task.server.name, peak.tenants[0]): peak for peak in alone}


def each_alone(peak: RepeatedPeak, dedicated: Dedicated) -> list[RepeatedPeak | None]:
    """The dedicated peak of each of its tenants on the same server, where measured."""
    return [dedicated.get((peak.task.server.name, tenant)) for tenant in peak.tenants]


def sharing_ratio(peak: RepeatedPeak, alone: Sequence[RepeatedPeak | None]) -> tuple[float, Floats]:
    """sum(r_i / C_i) at the limit and its draws; NaN and none when a peak is missing."""
    known = [each for each in alone if each is not None and each.is_known]
    if len(known) < len(alone) or not peak.is_known:
        return np.nan, np.empty(0)
    capacity = np.array([each.rates_rps[0] for each in known])
    capacity_draws = np.column_stack([each.rates_draws_rps[:, 0] for each in known])
    ratio = float((peak.rates_rps / capacity).sum())
    return ratio, (peak.rates_draws_rps / capacity_draws).sum(axis=1)


def interval(value: float, draws: Floats, tail: float = TAIL) -> Interval:
    """The percentile interval of the draws, `tail` on each side; NaN bounds without draws."""
    if not len(draws):
        return Interval(value, np.nan, np.nan)
    low, high = np.quantile(draws, [tail, 1 - tail])
    return Interval(value, float(low), float(high))
