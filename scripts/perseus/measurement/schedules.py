"""Draw the send times of a replay once, so that all windows of the replay have the same times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from perseus.measurement.cell import CellUnderTest
from perseus.peak.stats import Floats
from perseus.study.experiments.replay import Run, Trace, of_tenant
from perseus.study.recorded import read_trace
from perseus.traffic.mmpp import Mmpp
from perseus.traffic.renewal import GammaGaps
from perseus.traffic.replayed import Replayed

NEAR: Final = 0.05
"""Largest allowed relative difference between the mean rate of drawn send times and the configured
rate."""

MAX_DRAWS: Final = 200
"""Largest number of attempts to draw the send times of a tenant. If no attempt has a mean rate
close enough to the configured rate, the replay uses the attempt with the closest mean rate."""


class ArrivalTimes(Protocol):
    """An arrival process."""

    def times_s(self, rate_rps: float, duration_s: float, rng: np.random.Generator) -> Floats:
        """Return ascending send times in [0, duration_s) with the mean rate `rate_rps`."""


@dataclass(frozen=True)
class Schedule:
    """The configured mean rate of a tenant, and its ascending send times in seconds since the start
    of a window."""

    rate_rps: float
    times_s: Floats


def schedules(
    cell: CellUnderTest, run: Run, dedicated_rps: Mapping[str, float]
) -> tuple[Schedule, ...]:
    """Return the schedule of each tenant. Raises TraceError if a trace is no longer valid."""
    files = dict(zip(run.files, cell.inputs.files, strict=True))
    return tuple(
        _schedule(run, i, files, dedicated_rps.get(name, np.nan), cell.stream(i))
        for i, name in enumerate(cell.task.tenant_names)
    )


def _schedule(
    run: Run,
    tenant: int,
    files: Mapping[str, Path],
    dedicated_rps: float,
    rng: np.random.Generator,
) -> Schedule:
    recording = None if run.trace is None else _recording(run.trace, tenant, files)
    if run.rates_rps:
        rate_rps = of_tenant(run.rates_rps, tenant)
    elif run.percents_of_peak:
        rate_rps = of_tenant(run.percents_of_peak, tenant) / 100 * dedicated_rps
    else:
        assert recording is not None, "only a trace has its own rate"
        rate_rps = recording.rate_rps(run.duration_s)
    process = recording or _process(run)
    return Schedule(rate_rps, near_its_mean_s(process, rate_rps, run.duration_s, rng))


def near_its_mean_s(
    process: ArrivalTimes, rate_rps: float, duration_s: float, rng: np.random.Generator
) -> Floats:
    """Return random send times whose number is close to `rate_rps` x `duration_s`.

    A window contains few bursts, so the number of send times in a single random draw is usually far
    from `rate_rps` x `duration_s`. Therefore the function draws at most MAX_DRAWS times until the
    number is close enough, and returns the draw with the closest number.
    """
    nearest_s, nearest = np.empty(0), np.inf
    for _ in range(MAX_DRAWS):
        times_s = process.times_s(rate_rps, duration_s, rng)
        off = abs(len(times_s) / (rate_rps * duration_s) - 1)
        if off < nearest:
            nearest_s, nearest = times_s, off
        if off <= NEAR:
            break
    return nearest_s


def _process(run: Run) -> ArrivalTimes:
    return GammaGaps(run.cv) if run.bursts is None else Mmpp(**run.bursts.model_dump())


def _recording(trace: Trace, tenant: int, files: Mapping[str, Path]) -> Replayed:
    source = of_tenant(trace.sources, tenant)
    recorded = read_trace(files[source.file], source).recorded
    return Replayed(recorded, of_tenant(trace.begins_s, tenant), trace.time_scale)
