"""Test whether comparisons of simulated studies report all true differences and no false
differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.records import record_of
from benchmarks.results import Goal, Row
from benchmarks.serving import Place, Say
from perseus.peak.stats import Floats, mean_interval
from perseus.results.compare.judge import BETTER, WORSE
from perseus.results.compare.pairs import PEAK
from perseus.results.compare.source import Source
from perseus.results.compare.table import Comparison, compare
from perseus.results.noise import noise
from perseus.results.records import PeakRecord
from perseus.study.experiments.peak import DEDICATED, Run
from perseus.study.presets import PRESETS
from perseus.study.sla import Sla
from perseus.study.tasks.measure import (
    MeasuredArrivals,
    MeasuredClient,
    MeasuredServer,
    MeasuredTenant,
    MeasureTask,
)

BENCHMARK = "compare"
SAME, APART, DRAWS, POSTERIOR = 200, 100, 4000, 200
"""Each case has SAME pairs of equal studies, and APART pairs of studies with a difference. A
comparison has DRAWS draws of each ratio, and POSTERIOR draws of each peak."""

PRESET = "standard"

MODELS = {"squeezenet1_1": 100.0, "mobilenet_v3_small": 300.0}
"""Dedicated peaks, requests/s."""

MIXES = ((2, 1), (1, 1), (1, 2))
SLA = Sla(latency_ms=100)
GAIN = 0.9
"""Sharing ratio of every mix."""

KNOWS, ERROR = 0.02, 0.01
"""Standard deviations of the logarithm of a measured peak: KNOWS is the value that a search with
`standard` states, and ERROR is the true value on a host of constant speed. KNOWS is larger, because
the stated interval must also be valid on hosts whose speed changes."""

STEEP = 3.0
"""Exponent with which the p95 latency rises with the load."""

P95_ERROR = 0.06
"""Standard deviation of the logarithm of the measured p95 latency of a window. The limited number
of requests causes this error."""

CERTIFIED = 0.85
FASTER = 1.1


@dataclass(frozen=True)
class Case:
    """How the speed of a host changes: the standard deviation of the logarithm of the speed between
    cells (`between`) and between studies (`studies`). If `restarts` is true, the study has an
    experiment `aa`, which measures the noise of the host. For each entry of `others`, the study has
    a further server on a host of its own; the entry is the standard deviation between cells on this
    host."""

    between: float
    repeats: int = PRESETS[PRESET].repeats
    studies: float = 0.0
    restarts: int = 0
    has_goal: bool = True
    others: tuple[float, ...] = ()


CASES = {
    **{
        f"{PRESET}, 3 repeats that differ by {100 * between:g} %": Case(between)
        for between in (0.0, 0.02, 0.05, 0.1)
    },
    f"{PRESET}, 3 repeats that differ by 5 %, with aa of 5 server starts": Case(0.05, restarts=5),
    "1 repeat, host drift of 5 %, with aa of 5 server starts": Case(0.05, 1, restarts=5),
    "1 repeat, host drift of 5 %, without aa": Case(0.05, 1),
    f"{PRESET}, 3 repeats that differ by 2 %, on a host that changes by 5 % from study to study": (
        Case(0.02, studies=0.05, has_goal=False)
    ),
    f"{PRESET}, 3 repeats that differ by 8 % on one server and by 1 % on three others": (
        Case(0.08, others=(0.01, 0.01, 0.01))
    ),
}

FLAGGED = "share of equal pairs with a reported difference (lower is better)"
FOUND = "share of pairs 10 % apart with a reported difference (higher is better)"
HIDDEN = "half the width of the interval of the ratio of two peaks"
FEW, MOST = Goal("<=", 0.05, "ours"), Goal(">=", 0.8, "ours")


def run(at: Place, say: Say) -> Iterator[Row]:
    for name, case in CASES.items():
        say(name)
        same = [compared(case, seed, 1.0) for seed in range(SAME)]
        apart = [compared(case, SAME + seed, FASTER) for seed in range(APART)]
        few, most = (FEW, MOST) if case.has_goal else (None, None)
        # The goal for the preset `standard` does not apply to a single repeat.
        most = most if case.repeats > 1 else None
        yield Row(BENCHMARK, name, FLAGGED, float(np.mean(list(map(flags, same)))), goal=few)
        yield Row(BENCHMARK, name, FOUND, float(np.mean(list(map(flags, apart)))), goal=most)
        yield Row(BENCHMARK, name, HIDDEN, float(np.median(list(map(reach, same)))))


def compared(case: Case, seed: int, factor: float) -> Comparison:
    """Compare two simulated studies. In the new study, servers are `factor` times as fast as in the
    base study."""
    rng = np.random.default_rng(seed)
    return compare(study(case, rng, 1.0), study(case, rng, factor), DRAWS)


def flags(found: Comparison) -> bool:
    """Return whether the comparison reports a value as better or worse."""
    return any(each.verdict in (BETTER, WORSE) for each in found.judged)


def reach(found: Comparison) -> float:
    """Return the smallest relative difference that the comparison can detect, as the median over
    peaks."""
    ends = [each.simultaneous for each in found.judged if each.pair.metric == PEAK]
    return float(np.median([np.sqrt(each.high / each.low) for each in ends])) - 1


def study(case: Case, rng: np.random.Generator, factor: float) -> Source:
    """Return the records and tables of a study with dedicated peaks and mixes on each server."""
    cells = [
        cell
        for number, between in enumerate((case.between, *case.others), start=1)
        for cell in _cells(
            f"cpu{number}", replace(case, between=between), rng, factor * _spread(rng, case.studies)
        )
    ]
    first = [cell for cell in cells if cell.task.repeat == 1]
    return Source(
        where="",
        study="",
        digest="",
        tables={
            "peaks": pd.DataFrame([_peak(cell, case.repeats) for cell in first]),
            "tenants": pd.DataFrame([row for cell in cells for row in _tenants(cell, rng)]),
            "costs": pd.DataFrame([_cost(cell) for cell in first]),
            "aa": _aa(case, rng),
        },
        records=tuple(cells),
        checks={},
        without_records="",
    )


def _cells(server: str, case: Case, rng: np.random.Generator, speed: float) -> Iterator[PeakRecord]:
    """Yield all repeats of the dedicated peaks of a server, then all repeats of its mixes. The
    rates of the mixes depend on the dedicated peaks."""
    peaks: dict[str, float] = {}
    lines: list[tuple[tuple[str, ...], str, Run]]
    lines = [((name,), name, DEDICATED) for name in MODELS]
    lines += [(tuple(MODELS), "shared", Run.mix(weights)) for weights in MIXES]
    for names, scenario, run in lines:
        weights = np.array(run.weights or (1,))
        direction = weights / weights.sum() * [peaks.get(name, 1.0) for name in names]
        capacity = np.array([MODELS[name] for name in names])
        limit = (GAIN if len(names) > 1 else 1.0) / (direction / capacity).sum()
        found = []
        for repeat in range(1, case.repeats + 1):
            task, own = (
                _task(server, names, scenario, run, repeat),
                speed * _spread(rng, case.between),
            )
            found.append(own * limit * _spread(rng, ERROR))
            yield _record(task, direction, found[-1], own, peaks, rng)
        if run == DEDICATED:
            peaks[names[0]] = float(np.mean(found))


def _spread(rng: np.random.Generator, deviation: float) -> float:
    return float(np.exp(rng.normal(0, deviation)))


def _record(
    task: MeasureTask,
    direction: Floats,
    estimate: float,
    speed: float,
    peaks: Mapping[str, float],
    rng: np.random.Generator,
) -> PeakRecord:
    names = task.tenant_names
    return PeakRecord.model_validate(
        record_of(task)
        | {
            "folder": Path(task.cell),
            "line": {"base_rps": [0.0] * len(names), "direction_rps": direction.tolist()},
            "weights": Run.model_validate(task.run).weights,
            "dedicated_rps": dict(peaks),
            "estimate_scale": estimate,
            "certified_scale": CERTIFIED * estimate,
            "certified_window": 0,
            "first_failing_scale": None,
            "cliff": "",
            "speeds_rps": {name: (speed * MODELS[name],) for name in names},
            "posterior_scales": estimate * np.exp(rng.normal(0, KNOWS, POSTERIOR)),
        }
    )


def _task(server: str, names: tuple[str, ...], scenario: str, run: Run, repeat: int) -> MeasureTask:
    return MeasureTask(
        study="",
        cell=f"{server}.{scenario}.{run.name}.r{repeat}",
        scenario=f"{server}.{scenario}",
        repeat=repeat,
        seed=1,
        run=run,
        server=MeasuredServer(
            name=server,
            device="cpu",
            launcher="embedded",
            image=None,
            runtime="onnxruntime",
            cores=1,
            gpus=(),
            remote=None,
        ),
        tenants=tuple(
            MeasuredTenant(
                name=name,
                model=name,
                max_batch_size=8,
                request_batch_size=1,
                dynamic_batching=False,
                precision="fp32",
                priority=None,
                sla=SLA,
            )
            for name in names
        ),
        preset=PRESET,
        search=PRESETS[PRESET].settings,
        arrivals=MeasuredArrivals(process="poisson", cv=1.0),
        trace=None,
        client=MeasuredClient(protocol="grpc", shared_memory=False, processes=None),
    )


def _line(cell: PeakRecord) -> dict[str, Any]:
    task = cell.task
    return {"server": task.server.name, "scenario": task.scenario, "load_line": task.run.name}


def _peak(cell: PeakRecord, repeats: int) -> dict[str, Any]:
    """Return a row of table `peaks`. The comparison takes the values from the records; the table
    only shows that a cell has values."""
    unknown = ("ci_low_rps", "ci_high_rps", "sharing_ratio")
    ends = ("sharing_ratio_low", "sharing_ratio_high")
    return {
        **_line(cell),
        "study": "",
        "kind": cell.run.line,
        "preset": PRESET,
        "mix": f"{cell.task.scenario} {cell.task.run.name}",
        "verdict": "ok",
        "reason": "",
        "repeats_used": repeats,
        "estimate_rps": float(cell.rates_rps(cell.estimate_scale).sum()),
        **dict.fromkeys((*unknown, *ends), np.nan),
    }


def _cost(cell: PeakRecord) -> dict[str, Any]:
    rate = float(cell.rates_rps(cell.estimate_scale).sum())
    told = {"instance": "", "region": "", "pricing": "on_demand", "usd_per_hour": 1.0}
    return {**_line(cell), **told, "usd_per_million_inferences": 1e6 / 3600 / rate}


def _tenants(cell: PeakRecord, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield a row of table `tenants` for each tenant. The p95 latency is 60 ms at CERTIFIED times
    the limit, and rises with the total load."""
    rates = cell.rates_rps(cell.certified_scale)
    alone = np.array([cell.speeds_rps[name][0] for name in cell.task.tenant_names])
    load = float((rates / alone).sum()) / (GAIN if len(rates) > 1 else 1.0)
    for tenant, rate in zip(cell.task.tenants, rates, strict=True):
        p95_ms = 60 * (load / CERTIFIED) ** STEEP * _spread(rng, P95_ERROR)
        yield {
            **_line(cell),
            "cell": cell.task.cell,
            "tenant": tenant.name,
            "model": tenant.model,
            "rate_rps": rate,
            "request_bytes": 602112.0,
            "preprocessing": "",
            "sla_percentile": SLA.percentile,
            "sla_ms": SLA.latency_ms,
            "p95_ms": p95_ms,
            "p95_low_ms": p95_ms * np.exp(-1.96 * P95_ERROR),
            "p95_high_ms": p95_ms * np.exp(1.96 * P95_ERROR),
        }


def _aa(case: Case, rng: np.random.Generator) -> pd.DataFrame:
    """Return table `aa` with three windows for each server start. The throughputs of these windows
    vary by 1 %."""
    rates = [
        100 * _spread(rng, case.between) * np.exp(rng.normal(0, 0.01, 3))
        for _ in range(case.restarts)
    ]
    columns = ("server", "cell", "windows", "answered_rps", "low_rps", "high_rps", "noise_floor")
    floor = noise(rates).floor if rates else np.nan
    ends = [mean_interval(each) for each in rates]
    rows = [("cpu1", "cpu1.aa", 3, each.value, each.low, each.high, floor) for each in ends]
    return pd.DataFrame(rows, columns=list(columns))
