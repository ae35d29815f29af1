"""Records of studies whose true results are known.

Tenant i reaches the dedicated peak `capacities[i]`. On each load line, a shared server reaches the
point where sum(r_i / C_i) = gain. The estimates vary from repeat to repeat (`between`) and from
batch to batch (`within`). The speed of the host varies from cell to cell (`host`). `between`,
`within` and `host` are standard deviations on a logarithmic scale. In each cell, the throughput of
the busy server is SPARE * capacity * speed. The limit is proportional to speed ** SPARE, as in a
queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from measure_tasks import measure_task, tenant

from benchmarks.records import record_of
from perseus.measurement.pairs import all_pairs
from perseus.measurement.server_under_test import NO_SERVER
from perseus.peak.load_line import load_line, weights_along
from perseus.results.records import PeakRecord
from perseus.study.experiments.aa import Run as AaRun
from perseus.study.experiments.background import Run as BackgroundRun
from perseus.study.experiments.base import ExperimentRun
from perseus.study.experiments.catalogue import Run as CatalogueRun
from perseus.study.experiments.concurrency import Run as ConcurrencyRun
from perseus.study.experiments.peak import DEDICATED, Run
from perseus.study.experiments.replay import Bursts
from perseus.study.experiments.replay import Run as ReplayRun
from perseus.study.experiments.slowdown import Run as SlowdownRun
from perseus.study.experiments.soak import Run as SoakRun
from perseus.study.experiments.startup import Run as StartupRun
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla
from perseus.study.tasks.measure import MeasureTask
from perseus.study.tasks.tables import (
    DemandLevel,
    FleetDemand,
    GridQuestion,
    GridSetting,
    Price,
    TablesTask,
)

Plain = dict[str, Any]
"""The content of record.json or of a file of client ceilings."""

SLA_MS = {"resnet18": 120.0, "mobilenet_v3_large": 60.0}
SLOWDOWN = 1.25
"""Latency beside other tenants, divided by the latency alone at the same rate."""
MIXES = ((3, 1), (1, 1), (1, 3))


SPARE = 1.1
"""Throughput of the busy server, divided by the capacity."""


@dataclass(frozen=True)
class Truth:
    """The true values of a study, and the standard deviations of its records."""

    capacities: Mapping[str, float]
    gain: float = 1.25
    between: float = 0.01
    within: float = 0.02
    repeats: int = 2
    bootstraps: int = 200
    host: float = 0.0
    preset: str = "quick"


TRUTH = Truth({"resnet18": 30.0, "mobilenet_v3_large": 90.0})
PRICE = Price(
    instance="n1-standard-1",
    region="us-central1",
    on_demand_usd_per_hour=0.0475,
    spot_usd_per_hour=0.01306,
    source="a catalogue @ 006059e",
)
TASK = TablesTask(study="synthetic", seed=1, pricing=("on_demand", "spot"), prices={"cpu1": PRICE})


def records(
    truth: Truth = TRUTH,
    seed: int = 0,
    mixes: Sequence[tuple[int, ...]] = MIXES,
    holds: Sequence[tuple[str, int]] = (("resnet18", 50), ("mobilenet_v3_large", 50)),
    rate_shares: Sequence[float] = (),
) -> list[Plain]:
    """Return the records of a complete study, dedicated cells first.

    With `rate_shares`, the study also measures the mix of a demand.
    """
    rng, names = np.random.default_rng(seed), list(truth.capacities)
    made, peaks = [], {}
    for name in names:
        cells = _repeats(truth, rng, (name,), name, DEDICATED, {}, (0.0,), (1.0,))
        peaks[name] = float(np.mean([cell["estimate_scale"] for cell in cells]))
        made += cells
    everyone = tuple(names)
    for weights in mixes:
        direction = tuple(
            weight / sum(weights) * peaks[name] for weight, name in zip(weights, names, strict=True)
        )
        zero, run = (0.0,) * len(names), Run.mix(weights)
        made += _repeats(truth, rng, everyone, "shared", run, peaks, zero, direction)
    if rate_shares:
        run = Run.demanded(rate_shares)
        line, _ = load_line(run, names, peaks, {})
        weights = weights_along(rate_shares, [peaks[name] for name in names])
        rates = line.base_rps, line.direction_rps
        of_mix = _repeats(truth, rng, everyone, "shared", run, peaks, *rates)
        made += [record | {"weights": list(weights)} for record in of_mix]
    for background, percent in holds:
        base = tuple(percent / 100 * peaks[n] if n == background else 0.0 for n in names)
        direction = tuple(0.0 if n == background else peaks[n] / (len(names) - 1) for n in names)
        run = Run.hold(background, percent)
        made += _repeats(truth, rng, everyone, "shared", run, peaks, base, direction)
    return made


def background_records(
    truth: Truth = TRUTH,
    percents: Sequence[int] = (25, 50, 75),
    rates_rps: Sequence[tuple[float, ...]] = (),
) -> list[Plain]:
    """Return records that search each tenant beside a constant load of the others.

    The records of dedicated cells are not part of the result.
    """
    rng, peaks, everyone = np.random.default_rng(1), truth.capacities, tuple(truth.capacities)
    made = []
    for searched in everyone:
        runs = [
            BackgroundRun(
                name=f"background-{searched}-{n}", searched=searched, background_percent=n
            )
            for n in percents
        ]
        runs += [
            BackgroundRun(name=f"background-{searched}-at-{i}", searched=searched, rates_rps=rates)
            for i, rates in enumerate(rates_rps)
        ]
        direction = tuple(float(n == searched) * peaks[n] for n in everyone)
        for run in runs:
            background = run.background_rps(everyone, peaks)
            base = tuple(background.get(n, 0.0) for n in everyone)
            made += _repeats(truth, rng, everyone, "shared", run, peaks, base, direction)
    return made


def _repeats(
    truth: Truth,
    rng: np.random.Generator,
    names: tuple[str, ...],
    scenario: str,
    run: Run,
    peaks: Mapping[str, float],
    base: tuple[float, ...],
    direction: tuple[float, ...],
) -> list[Plain]:
    capacity = np.array([truth.capacities[name] for name in names])
    gain = truth.gain if len(names) > 1 else 1.0
    limit = (gain - (np.array(base) / capacity).sum()) / (np.array(direction) / capacity).sum()
    cells = []
    for repeat in range(1, truth.repeats + 1):
        speed = np.exp(rng.normal(0, truth.host)) if truth.host else 1.0
        spread = rng.normal(0, truth.between) + rng.normal(0, truth.within)
        estimate = speed**SPARE * limit * np.exp(spread)
        scatter = np.exp(rng.normal(0, truth.within, truth.bootstraps))
        task = _task(names, scenario, run, repeat, truth.preset)
        cells.append(
            record_of(task)
            | {
                "line": {"base_rps": list(base), "direction_rps": list(direction)},
                "weights": list(run.weights),
                "estimate_scale": float(estimate),
                "certified_scale": float(0.9 * estimate),
                "certified_window": 7,
                "first_failing_scale": float(1.15 * estimate),
                "cliff": "",
                "other_load": "",
                "speeds_rps": {
                    name: [SPARE * speed * truth.capacities[name]] * 4 for name in names
                },
                "work_ms": {},
                "rounds": [],
                "model": {},
                "posterior_scales": (estimate * scatter).tolist(),
                "dedicated_rps": dict(peaks),
            }
        )
    return cells


def demand(rps: Mapping[str, float], **settings: Any) -> FleetDemand:
    """Return a demand that is constant in time, for on-demand servers cpu1."""
    level = DemandLevel(name="demand", rps=dict(rps))
    fixed: Plain = {"headroom": 0.0, "min_servers": 1, "servers": ("cpu1",), "spot": None}
    return FleetDemand(levels=(level,), **{**fixed, **settings})


def with_two_presets(**truth: Any) -> list[Plain]:
    """Return a study with the preset quick and a scenario `sure` with the preset standard.

    During the measurement of `sure` and its dedicated peaks, the server was twice as fast.
    """
    faster = {name: 2 * rate for name, rate in TRUTH.capacities.items()}
    sure = records(Truth(faster, preset="standard", **truth), seed=1, holds=())
    return [*records(Truth(TRUTH.capacities, **truth), holds=()), *map(_sure, sure)]


def _sure(record: Plain) -> Plain:
    """Return the record for the scenario `sure`, or for a dedicated peak of this scenario."""
    task = MeasureTask.model_validate(record["cell"])
    run = Run.model_validate(task.run)
    named = {"scenario": "cpu1.sure"}
    if run == DEDICATED:
        named, run = {}, Run.dedicated(task.preset)
    task = task.model_copy(update={**named, "run": run})
    cell = f"{task.scenario}.{run.name}.r{task.repeat}"
    return record | {"cell": task.model_copy(update={"cell": cell}).plain()}


def _task(
    names: tuple[str, ...], scenario: str, run: ExperimentRun, repeat: int, preset: str = "quick"
) -> MeasureTask:
    tenants = (
        tenant(name, max_batch_size=8, sla=Sla(latency_ms=SLA_MS.get(name, 100.0)))
        for name in names
    )
    return measure_task(
        *tenants,
        run=run,
        study="synthetic",
        cell=f"cpu1.{scenario}.{run.name}.r{repeat}",
        scenario=f"cpu1.{scenario}",
        repeat=repeat,
        seed=1,
        preset=preset,
        search=PRESETS[preset].settings,
    )


def loaded(made: Sequence[Plain]) -> list[PeakRecord]:
    """Return the records of searches as `PeakRecord`, without a folder of raw results."""
    return [PeakRecord.model_validate({**record, "folder": Path()}) for record in made]


def with_outcome(record: Plain, outcome: str, reason: str) -> Plain:
    """Return the record with this outcome. After a failed or blocked cell, the record has no facts
    about a server."""
    nothing: Plain = {}
    if outcome != "uncertified":
        nothing |= {"estimate_scale": None, "posterior_scales": [], "first_failing_scale": None}
        nothing |= {"speeds_rps": {}}
    if outcome != "client_limited":
        nothing |= {"certified_scale": None, "certified_window": -1}
    if outcome in ("failed", "blocked"):
        nothing |= NO_SERVER
    return record | nothing | {"outcome": outcome, "reason": reason}


def predicted(record: Plain) -> Plain:
    """Return the record of a mix that is not measured, because other mixes predict its peak."""
    nothing: Plain = {"certified_scale": None, "certified_window": -1, "first_failing_scale": None}
    return (
        record
        | nothing
        | NO_SERVER
        | {
            "outcome": "predicted",
            "reason": "not measured: prediction model B4 predicts the peak of this mix with an"
            " error of at most 12% (confidence 90 %), from 6 measured mixes",
            "speeds_rps": {},
            "requests": 0,
            "measured_s": 0.0,
        }
    )


def by_server(record: Plain) -> Plain:
    """Return the record of a dedicated cell for a tenant whose images the server preprocesses."""
    (told,) = record["cell"]["tenants"]
    costs = {"request_bytes": {told["name"]: 50000.0}, "client_preprocess_ms": {told["name"]: 4.5}}
    cell = record["cell"] | {"tenants": [told | {"preprocessing": "server"}]}
    return record | costs | {"cell": cell}


def with_lost(made: Sequence[Plain], line: str, outcome: str) -> list[Plain]:
    """Return the records, with the outcome `outcome` for the second repeat of a load line."""
    return [
        with_outcome(record, outcome, "it was lost")
        if record["cell"]["run"]["name"] == line and record["cell"]["repeat"] == 2
        else record
        for record in made
    ]


def with_failures(made: Sequence[Plain]) -> list[Plain]:
    """Return the records, with another outcome than `ok` on each of four load lines."""
    outcomes = {
        "mix-3-1": (
            "infeasible",
            "the SLA fails at every rate tested (7.1% of the requests take longer than 120 ms)",
        ),
        "mix-1-3": ("client_limited", "the client used 91% of its core"),
        "hold-resnet18-50": ("uncertified", "no rate was certified (1.0% to 6.2%)"),
        "hold-mobilenet_v3_large-50": ("failed", "the server ended during the measurement"),
    }
    names = [record["cell"]["run"]["name"] for record in made]
    return [
        with_outcome(record, *outcomes[name]) if name in outcomes else dict(record)
        for record, name in zip(made, names, strict=True)
    ]


LEVELS = (1, 4, 16)


def _of_kind(
    run: ExperimentRun, names: Sequence[str] = tuple(TRUTH.capacities), **found: Any
) -> Plain:
    return record_of(_task(tuple(names), "shared", run, 1)) | found


def sweep_record(names: Sequence[str] = tuple(TRUTH.capacities)) -> Plain:
    """Return the record of a closed loop on a server that carries 100 requests/s of each tenant."""
    levels = [
        {
            "concurrency": level,
            "tenant": tenant,
            "answered_rps": min(25.0 * level, 100.0),
            "low_rps": 0.98 * min(25.0 * level, 100.0),
            "high_rps": 1.02 * min(25.0 * level, 100.0),
        }
        for level in LEVELS
        for tenant in names
    ]
    return _of_kind(ConcurrencyRun(concurrencies=LEVELS), names, levels=levels)


STARTS = 8


def startup_record(names: Sequence[str] = tuple(TRUTH.capacities)) -> Plain:
    """Return the record of server starts. With a cold page cache, a start takes 1 s longer."""
    run = StartupRun(starts=STARTS, page_cache=("warm", "cold"))
    starts = [
        {
            "page_cache": state,
            "resident_share": float(state == "warm"),
            "ready_s": 1.2 + 0.05 * i + (state == "cold"),
            "load_s": dict.fromkeys(names, 0.2 + 0.01 * i),
            "first_inference_ms": dict.fromkeys(names, 40.0 + i),
            "steady_inference_ms": dict.fromkeys(names, 4.0 + 0.1 * i),
        }
        for i in range(STARTS)
        for state in run.page_cache
    ]
    return _of_kind(run, names, starts=starts)


AA_RPS = ((98.0, 100.0, 102.0), (104.0, 106.0, 108.0), (92.0, 94.0, 96.0), (99.0, 100.0, 101.0))


def aa_record() -> Plain:
    """Return the record of an A/A experiment: four starts of a server, each with throughputs of
    about 100 requests/s."""
    run = AaRun(restarts=len(AA_RPS), windows=len(AA_RPS[0]), concurrency=4)
    return _of_kind(run, capacities_rps=[list(rates) for rates in AA_RPS])


def catalogue_record(
    name: str = "resnet18", full_rps: float = 33.0, in_process_ms: float = 27.0, **settings: Any
) -> Plain:
    """Return the record of a model in a catalogue. The limits within both SLAs are below the
    saturation throughput `full_rps`."""
    run = CatalogueRun(times_unloaded=3.0, in_process_s=2.0)
    record = record_of(_task((name,), name, run, 1))
    tenants = [each | settings for each in record["cell"]["tenants"]]
    limits = [
        {
            "stated": stated,
            "sla_ms": sla_ms,
            "limit_rps": share * full_rps,
            "low_rps": 0.95 * share * full_rps,
            "high_rps": 1.05 * share * full_rps,
            "certified_rps": 0.85 * share * full_rps,
            "reason": "",
        }
        for stated, sla_ms, share in (("times_unloaded", 90.0, 0.7), ("latency", 200.0, 0.9))
    ]
    return (
        record
        | {"cell": record["cell"] | {"tenants": tenants}}
        | {"computed_precisions": {name: tenants[0]["precision"]}}
        | {"in_process_ms": in_process_ms, "in_process_error": "", "limits": limits}
        | {"accuracy": None}
        | {"full_rps": full_rps, "full_low_rps": 0.98 * full_rps, "full_high_rps": 1.02 * full_rps}
    )


PAIR_SLOWDOWN, ROUNDS = 1.6, 3


def slowdown_record(names: Sequence[str] = tuple(TRUTH.capacities)) -> Plain:
    """Return the record of slowdowns at 9 requests/s. The slowdown of each tenant of a pair is
    PAIR_SLOWDOWN.

    Alone, the mean latency of each tenant is 10 ms.
    """
    rng = np.random.default_rng(0)
    run = SlowdownRun(name="slowdown-30", percent_of_peak=30, rate_rps=None, rounds=ROUNDS)
    steps = [
        {
            "round": number,
            "tenants": [names[i] for i in step],
            "outcome": "ok",
            "reason": "",
            "seen": {names[i]: _latency(rng, 10 * PAIR_SLOWDOWN ** (len(step) - 1)) for i in step},
        }
        for number in range(1, ROUNDS + 1)
        for step in all_pairs(len(names), rng)
    ]
    rates_rps, dedicated_rps = dict.fromkeys(names, 9.0), dict.fromkeys(names, 30.0)
    return _of_kind(run, names, rates_rps=rates_rps, dedicated_rps=dedicated_rps, steps=steps)


def _latency(rng: np.random.Generator, usual_ms: float) -> Plain:
    """Return the latencies of a tenant in one window. The interval of the p95 has no upper end."""
    mean_ms = usual_ms * np.exp(rng.normal(0, 0.02))
    return {
        "requests": 150,
        "completed_ratio": 1.0,
        "verdict": "pass",
        "mean_ms": {"value": mean_ms, "low": 0.96 * mean_ms, "high": 1.04 * mean_ms},
        "p95_ms": {"value": 2 * mean_ms, "low": 1.7 * mean_ms, "high": None},
    }


REPLAYED_S, BURST_S, BURST_AT = 150, 4, (20, 90)
"""The length of a replay and of its bursts, and the seconds in which the bursts start."""


def replay_record(names: tuple[str, ...] = tuple(TRUTH.capacities)) -> Plain:
    """Return the record of a replay with 10 requests/s, and 50 requests/s in bursts.

    In bursts, one fifth of the requests of a tenant alone are late, and one half of its requests
    beside the other tenants. Beside the other tenants, all requests in the second after a burst are
    late, too.
    """
    run = ReplayRun(
        name="replay-mmpp",
        process="mmpp",
        duration_s=float(REPLAYED_S),
        rates_rps=(12.0,),
        bursts=Bursts(burst_factor=5, burst_s=4, burst_share=0.05),
    )
    offered = [
        _offered(phase.name, names[i], window)
        for window, phase in enumerate(run.phases(len(names)), start=1)
        for i in phase.loaded
    ]
    return _of_kind(run, names, offered=offered)


def _offered(phase: str, tenant: str, window: int) -> Plain:
    shared = phase == "shared"
    requests, within = [10] * REPLAYED_S, [10] * REPLAYED_S
    for start in BURST_AT:
        end = start + BURST_S
        requests[start:end] = [50] * BURST_S
        within[start:end] = [25 if shared else 40] * BURST_S
        within[end] = 0 if shared else 10
    worst = {"start_s": 0, "requests": 760, "within": 650 if shared else 720}
    return {
        "phase": phase,
        "tenant": tenant,
        "window": window,
        "rate_rps": 12.0,
        "verdict": "sla_missed" if shared else "ok",
        "reason": "87.9% of the requests took at most 60 ms" if shared else "",
        "attained": sum(within) / sum(requests),
        "attained_low": 0.8,
        "attained_high": 1.0,
        "worst_minute": worst,
        "bursts": [
            {
                "start_s": start,
                "end_s": start + BURST_S,
                "requests": 50 * BURST_S,
                "recovery_s": 1.5 if shared else 0.2,
            }
            for start in BURST_AT
        ],
        "most_in_flight": 30 if shared else 12,
        "fidelity": {
            "lag_p50_ms": 0.1,
            "lag_p99_ms": 0.7,
            "lag_max_ms": 3.0,
            "punctual": 0.995,
            "unsent": 0,
        },
        "requests_each_s": requests,
        "within_each_s": within,
    }


SOAK_WINDOWS, SOAK_WINDOW_S = 60, 60.0
LEAK_MB_PER_HOUR, LEAK_FILES_PER_HOUR = 12.0, 30.0


def soak_record(names: Sequence[str] = tuple(TRUTH.capacities)) -> Plain:
    """Return the record of one hour on a server that leaks memory and files.

    The server starts with 500 MB and 60 open files.
    """
    rng = np.random.default_rng(0)
    percents = (40,) * len(names)
    run = SoakRun(name="soak-40-40", duration_s=3600, window_s=58.0, percents_of_peak=percents)
    readings = []
    for window in range(1, SOAK_WINDOWS + 1):
        seconds = window * SOAK_WINDOW_S
        memory_mb = 500 + LEAK_MB_PER_HOUR * seconds / 3600 + rng.normal(0, 0.3)
        readings.append(
            {
                "time_ns": 10**12 + round(seconds * 1e9),
                "memory_bytes": round(1e6 * memory_mb),
                "open_files": 60 + int(LEAK_FILES_PER_HOUR * seconds / 3600),
            }
        )
    rates_rps = {name: 0.4 * TRUTH.capacities.get(name, 30.0) for name in names}
    return _of_kind(run, names, readings=readings, rates_rps=rates_rps)


RUNTIMES = {"onnxruntime": 1.0, "openvino": 1.5, "pytorch": 0.7}
"""The peaks with each runtime of a grid, as multiples of the true peaks."""


def grid_records(
    factors: Mapping[str, float] = RUNTIMES, truth: Truth = TRUTH, seed: int = 0
) -> list[Plain]:
    """For each runtime in `factors`, return the records of a mix and of its dedicated peaks."""
    made = []
    for i, (runtime, factor) in enumerate(factors.items()):
        capacities = {name: factor * rps for name, rps in truth.capacities.items()}
        faster = replace(truth, capacities=capacities)
        found = records(faster, len(factors) * seed + i, mixes=((1, 1),), holds=())
        made += [on_server(record, server_with(runtime, factors), runtime) for record in found]
    return made


def grid_task(
    factors: Mapping[str, float] = RUNTIMES, at_most: Mapping[str, float] | None = None
) -> TablesTask:
    """Return the task of `grid_records`, which also has a runtime that the study omits."""
    names = [server_with(runtime, factors) for runtime in factors]
    lines = [((name,), name, "peak") for name in TRUTH.capacities]
    lines.append((tuple(TRUTH.capacities), "shared", "mix-1-1"))
    settings = {**dict.fromkeys(factors, ""), "tensorrt": "it needs a GPU"}
    questions = [
        GridQuestion(
            grid="shared",
            tenants=tenants,
            load_line=line,
            at_most=dict(at_most or {}),
            settings=tuple(
                GridSetting(
                    values={"runtime": runtime},
                    description=f"runtime {runtime}",
                    server=server_with(runtime, factors),
                    scenario=f"{server_with(runtime, factors)}.{scenario}",
                    load_line=line,
                    why_not=why_not,
                )
                for runtime, why_not in settings.items()
            ),
        )
        for tenants, scenario, line in lines
    ]
    prices = dict.fromkeys(names, PRICE)
    return TASK.model_copy(update={"prices": prices, "grids": tuple(questions)})


def server_with(runtime: str, factors: Mapping[str, float]) -> str:
    return "cpu1" if runtime == next(iter(factors)) else f"cpu1~runtime-{runtime}"


def on_server(record: Plain, name: str, runtime: str) -> Plain:
    """Return the record with the name and the runtime of another server of a grid."""
    cell = record["cell"]
    moved = {key: cell[key].replace("cpu1.", f"{name}.", 1) for key in ("cell", "scenario")}
    server = cell["server"] | {"name": name, "runtime": runtime}
    return record | {"cell": cell | moved | {"server": server}}


def ceiling(names: Sequence[str] = tuple(TRUTH.capacities)) -> Plain:
    """Return the content of ceilings/cpu1.json for a client that can send 900 requests/s."""
    return {
        "server": "cpu1",
        "client": {"protocol": "grpc", "shared_memory": False, "processes": None},
        "arrivals": {"process": "poisson", "cv": 1.0},
        "processes": 1,
        "started_unix_ns": 1_700_000_000 * 10**9,
        "host": {"client_cores": [0]},
        "shapes": [
            {
                "inputs": "3x224x224",
                "request_batch_size": 1,
                "request_bytes": 602112,
                "models": sorted(names),
                "closed": [
                    {"concurrency": 1, "rate_rps": 1300.0, "cpu_us_per_request": 400.0},
                    {"concurrency": 4, "rate_rps": 1800.0, "cpu_us_per_request": 350.0},
                ],
                "open": [
                    _tried(1620.0, 30.0, "the client used 85% of its core"),
                    _tried(1377.0, 2.0, "send lag p99 2.0 ms > 1.0 ms"),
                    _tried(900.0, 0.8, ""),
                ],
                "longest_lag_ms": 1.0,
                "disturbed": "",
            }
        ],
    }


def _tried(rate_rps: float, lag_ms: float, reason: str) -> Plain:
    return {
        "rate_rps": rate_rps,
        "send_lag_p99_ms": lag_ms,
        "client_cpu": 0.5,
        "valid": not reason,
        "reason": reason,
    }
