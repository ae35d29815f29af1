"""Test whether intervals of sharing ratios contain the true ratio, in simulated studies.

A study has three cells, one after another, on an idle host or on a host whose speed changes: each
of two tenants alone, then both tenants in the mix 1 : 1 of the measured peaks. The truth is the
ratio on an idle host, after an average start of the shared server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial

import numpy as np

from benchmarks.coverage import CALIBRATED, HOSTS, NOMINAL, WIDTH
from benchmarks.results import Row
from benchmarks.servers import P50, QUICK, Server, jittered, limit_rps
from benchmarks.serving import SEED, Place, Say
from benchmarks.simulation import (
    STEP_S,
    Host,
    RecordedHost,
    Service,
    Slowness,
    as_recorded,
    even,
    exponential,
)
from perseus.peak.load_line import LoadLine, load_line
from perseus.peak.outcome import Peak
from perseus.peak.search import find_peak
from perseus.results.paired import paired_peaks
from perseus.results.records import Line, ModelRecord, PeakRecord, RoundRecord
from perseus.results.repeats import Quantity, group, key, sharing_ratio
from perseus.study.experiments.peak import DEDICATED, Run
from perseus.study.sla import Sla
from perseus.study.tasks.measure import MeasuredServer, MeasuredTenant, MeasureTask

BENCHMARK = "sharing"
STUDIES = 50
BETWEEN_S = 60.0
"""Seconds between the end of a search and the start of the next search, on another server."""

STUDY_S = 2000.0
"""Seconds for which the speed of a host is simulated. A study takes less time."""

SERVER = MeasuredServer.model_construct(name="simulated")
NAMES = ("first", "second")
MIX = Run.mix((1, 1))


@dataclass(frozen=True)
class Pair:
    """Two models with their SLAs, for searches of each model alone and of both together. If
    `instances` is true, each model has its own queue, and both share a core. If `instances` is
    false, both models share one queue."""

    services: tuple[Service, Service]
    slas: tuple[Sla, Sla]
    instances: bool = False
    interference: float = 0.0
    between_starts: float = 0.0
    """Standard deviation of log(1 + interference) between starts of the shared server."""

    def started(self, rng: np.random.Generator) -> Pair:
        """Return the pair with the interference after one start of the shared server."""
        factor = np.exp(self.between_starts * rng.standard_normal())
        return replace(self, interference=(1 + self.interference) * float(factor) - 1)

    def server(self, *tenants: int) -> Server:
        return Server(
            tuple(self.services[i] for i in tenants),
            tuple(self.slas[i] for i in tenants),
            100,
            (1 / len(tenants),) * len(tenants),
            instances=self.instances,
            interference=self.interference,
        )

    @cached_property
    def truth(self) -> float:
        """The sharing ratio on an idle host, after an average start: the sum over both models of
        (rate together with the other model / peak alone)."""
        alone_rps = np.array([limit_rps(self.server(0)), limit_rps(self.server(1))])
        shares = alone_rps / alone_rps.sum()
        together_rps = limit_rps(replace(self.server(0, 1), shares=tuple(shares)))
        return float((together_rps * shares / alone_rps).sum())


PAIRS = {
    "service times of 4 and 12 ms with 5 % jitter, p95 <= 40 and 80 ms": Pair(
        (jittered(0.004), jittered(0.012)), (Sla(latency_ms=40), Sla(latency_ms=80)), instances=True
    ),
    "service times of 4 and 12 ms, 15 % slower while both work, p95 <= 40 and 80 ms": Pair(
        (jittered(0.004), jittered(0.012)),
        (Sla(latency_ms=40), Sla(latency_ms=80)),
        instances=True,
        interference=0.15,
    ),
    "service times of 4 and 12 ms, starts that differ by 2 %, p95 <= 40 and 80 ms": Pair(
        (jittered(0.004), jittered(0.012)),
        (Sla(latency_ms=40), Sla(latency_ms=80)),
        instances=True,
        interference=0.05,
        between_starts=0.02,
    ),
    "exponential service times of 5 and 10 ms, p95 <= 50 and 100 ms": Pair(
        (exponential(0.005), exponential(0.01)), (P50, Sla(latency_ms=100))
    ),
}
"""The pairs, by the name of the case. With starts that differ by 2 %, a request takes 5 % longer
while both models work, and each start of the shared server changes this time by about 2 %."""


@dataclass(frozen=True)
class Studied:
    """The sharing ratio that Perseus states for a study, and the ratio of the peaks that the
    searches of the study found."""

    ratio: Quantity
    by_searches: Quantity


def run(at: Place, say: Say) -> Iterator[Row]:
    os.sched_setaffinity(0, [at.client_core, at.server_core])
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for name, pair in PAIRS.items():
            for on, host in {"on an idle host": None, **HOSTS}.items():
                case = f"{name}, {on}"
                found = list(pool.map(partial(study, pair, host), range(STUDIES)))
                say(f"{case}: true ratio {pair.truth:.3f}, {STUDIES} studies")
                yield from rows_of(case, found, pair.truth)


def rows_of(case: str, found: Sequence[Studied], truth: float) -> Iterator[Row]:
    known = [each for each in found if each.ratio.is_known]
    covers, ratios, widths = _told([each.ratio for each in known], truth)
    covers_so, ratios_so, _ = _told([each.by_searches for each in known], truth)
    for metric, value, goal in (
        ("share of 95 % intervals that contain the truth (higher is better)", covers, NOMINAL),
        ("share of 95 % intervals that contain the truth, searches alone", covers_so, None),
        ("mean of ratio / truth", float(np.mean(ratios)), None),
        ("standard deviation of the ratio", float(np.std(ratios)), None),
        ("standard deviation of the ratio, searches alone", float(np.std(ratios_so)), None),
        ("width of the interval / truth", float(np.mean(widths)), None),
        (
            WIDTH,
            float(np.mean(widths) / (2 * 1.96 * np.std(ratios))) if len(known) > 1 else np.nan,
            CALIBRATED,
        ),
        ("share of studies with a ratio", len(known) / len(found), None),
    ):
        yield Row(BENCHMARK, case, metric, value, goal=goal)


def _told(ratios: Sequence[Quantity], truth: float) -> tuple[float, list[float], list[float]]:
    """Return the share of intervals that contain the truth, the ratios divided by the truth, and
    the widths of the intervals divided by the truth."""
    intervals = [ratio.interval() for ratio in ratios]
    covers = float(np.mean([each.low <= truth <= each.high for each in intervals]))
    widths = [(each.high - each.low) / truth for each in intervals]
    return covers, [ratio.value / truth for ratio in ratios], widths


def study(pair: Pair, host: Host | RecordedHost | None, seed: int) -> Studied:
    """Run three searches, and return their sharing ratio."""
    rng = np.random.default_rng([SEED, seed])
    slowness: Slowness = even
    if host is not None:
        factors = host.factors(np.random.default_rng([SEED, seed, 1]), STUDY_S)
        slowness = as_recorded(STEP_S, factors)
    clock_s, alone = 1.0, []
    for i in range(len(NAMES)):
        record, clock_s = searched(pair, (i,), {}, rng, slowness, clock_s + BETWEEN_S)
        alone.append(record)
    dedicated_rps = {name: record.estimate_scale for name, record in zip(NAMES, alone, strict=True)}
    if not all(record.has_limit for record in alone):
        unknown = Quantity(np.nan, np.empty(0))
        return Studied(unknown, unknown)
    started = pair.started(np.random.default_rng([SEED, seed, 2]))
    shared, _ = searched(started, (0, 1), dedicated_rps, rng, slowness, clock_s + BETWEEN_S)
    records = (shared, *alone)
    return Studied(ratio_of(records), ratio_of([without_pairs(each) for each in records]))


def searched(
    pair: Pair,
    tenants: Sequence[int],
    dedicated_rps: dict[str, float],
    rng: np.random.Generator,
    slowness: Slowness,
    begins_s: float,
) -> tuple[PeakRecord, float]:
    """Return the record of a cell's search, and the time at which the search ends, in seconds."""
    server, names = pair.server(*tenants), [NAMES[i] for i in tenants]
    of_cell = MIX if len(tenants) > 1 else DEDICATED
    system = replace(server.simulated(rng), slowness=slowness, clock_s=begins_s)
    unloaded_ms = server.unloaded_ms(rng)
    medians_ms = {name: float(np.median(ms)) for name, ms in zip(names, unloaded_ms, strict=True)}
    line, start = load_line(of_cell, names, dedicated_rps, medians_ms)
    peak = find_peak(
        system,
        line,
        server.slas,
        QUICK,
        start=start,
        unloaded_ms=unloaded_ms,
        names=names,
        rng=rng,
    )
    return record_of(peak, names, of_cell, line), system.clock_s


def record_of(peak: Peak, names: Sequence[str], of_cell: Run, line: LoadLine) -> PeakRecord:
    """Return the record of a search of a tenant alone or of a mix."""
    return PeakRecord.model_construct(
        task=MeasureTask.model_construct(
            scenario="+".join(names),
            server=SERVER,
            preset="quick",
            run=of_cell,
            tenants=tuple(MeasuredTenant.model_construct(name=name) for name in names),
        ),
        outcome=peak.outcome,
        line=Line(base_rps=line.base_rps, direction_rps=line.direction_rps),
        estimate_scale=peak.estimate,
        posterior_scales=tuple(peak.posterior),
        speeds_rps=dict(zip(names, peak.speeds_rps, strict=False)),
        rounds=tuple(RoundRecord(**asdict(each)) for each in peak.rounds),
        model=ModelRecord(**asdict(peak.model)),
    )


def without_pairs(record: PeakRecord) -> PeakRecord:
    return record.model_copy(
        update={"speeds_rps": {}, "rounds": (), "model": ModelRecord(alone_rps=())}
    )


def ratio_of(records: Sequence[PeakRecord]) -> Quantity:
    """Return the sharing ratio of a shared cell and the dedicated cells of its tenants."""
    peaks = paired_peaks(group(records, SEED), SEED)
    shared, *alone = (peaks[key(record.task)] for record in records)
    return sharing_ratio(shared, alone)
