"""Write synthetic raw results of a whole study, with any number of requests."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from benchmarks.records import GRACE_S, SETTLE_S, record_of, row_of
from perseus.host.files import write_json
from perseus.measurement.monitor import MonitorFile
from perseus.measurement.raw_results import RequestsWriter, write_windows
from perseus.measurement.samples import Row as Sample
from perseus.peak.stats import Floats
from perseus.peak.system import Observation
from perseus.peak.verdict import judge
from perseus.peak.window import Phase
from perseus.study import planning
from perseus.study.cells import Cell, Study
from perseus.study.experiments.peak import DEDICATED, Run
from perseus.study.read import read_study
from perseus.study.sla import Sla
from perseus.study.tasks.measure import MeasureTask
from perseus.traffic.requests import MS, Requests, Status

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "config" / "studies" / "scale.yaml"
GAIN = 0.9
"""Sharing ratio of every mix."""

POSTERIOR = 200
SEARCHED = (
    *[(Phase.BRACKET, factor) for factor in (0.5, 0.7, 1.0, 1.4)],
    *[(Phase.BISECT, factor) for factor in (1.2, 0.85, 1.05)],
    *[(Phase.NEAR_LIMIT, factor) for factor in np.linspace(0.9, 1.1, 9)],
    (Phase.CERTIFY, 0.9),
)
"""Phase of each window of a search, and its load as a share of the limit. After these windows, each
tenant runs alone, and saturation probes follow."""

CERTIFIED = len(SEARCHED) - 1
SLA = Sla(latency_ms=100.0)
"""SLA of the windows that `_judged` evaluates. All cells reuse the results of these windows, with
each latency multiplied by (latency limit of the tenant / latency limit of this SLA)."""

LOOKS = 4
"""Number of saturation probes of each tenant."""

WORK = np.linspace(0.8, 1.2, 100)
"""Service times of the busy server, divided by their mean."""

SAMPLES_S = 75


def study(repeats: int = 1, servers: int | None = None) -> Study:
    """Return the study `scale` with only its first `servers` servers. With one repeat and all
    servers, the study has 1,000 cells."""
    configuration = load_configfile(str(ROOT / "config" / "config.yaml"))
    update_config(configuration, load_configfile(str(STUDY)))
    update_config(configuration, {"measurement": {"repeats": repeats}})
    used = [server["name"] for server in configuration["servers"]][:servers]
    for scenario in configuration["scenarios"]:
        scenario["servers"] = used
    return read_study(configuration, prices=ROOT / "config" / "prices.csv", folder=ROOT)


def write(of: Study, requests: int, raw: Path) -> list[Path]:
    """Write the raw results of all cells with `requests` requests in total, and return the folders
    of the cells."""
    each = requests // len(of.cells)
    return [_write_cell(of, cell, each, raw / cell.id) for cell in of.cells.values()]


def _write_cell(of: Study, cell: Cell, requests: int, folder: Path) -> Path:
    task = planning.measure_task(of, cell)
    rng = np.random.default_rng(zlib.crc32(cell.id.encode()))

    line = _direction(task)
    limit = _limit(task, line)
    rows: list[dict[str, Any]] = []
    with (
        RequestsWriter(folder / "requests.parquet") as writer,
        MonitorFile(folder / "monitor.parquet") as monitor,
    ):
        for number, (phase, factor, loaded) in enumerate(_windows(task)):
            rates = np.where(loaded, factor * limit * line, 0.0)
            count = requests // _count(task)
            offered = _requests(rng, task.slas, rates, count, factor, _start_ns(number))
            writer.add(task.tenant_names, offered)
            rows += _rows(task, number, phase, factor, factor * limit, rates)
        monitor.write(list(_samples(task)))
    write_windows(folder / "windows.parquet", rows)
    write_json(folder / "record.json", _record(task, line, limit, rng))
    (folder / "server.log").touch()
    return folder


def _windows(task: MeasureTask) -> Iterator[tuple[Phase, float, Floats]]:
    """Yield, for each window, its phase, its load as a share of the limit, and the tenants with
    load."""
    everyone = np.ones(len(task.tenants), bool)
    yield from ((phase, factor, everyone) for phase, factor in SEARCHED)
    if len(everyone) > 1:
        yield from ((Phase.ALONE, 0.9, row) for row in np.eye(len(everyone), dtype=bool))
    for _ in range(LOOKS):
        yield from ((Phase.PROBE, 1.0, row) for row in np.eye(len(everyone), dtype=bool))


def _start_ns(window: int) -> int:
    return 10**12 + window * 11 * 10**9


def _count(task: MeasureTask) -> int:
    return sum(1 for _ in _windows(task))


def _capacity_rps(task: MeasureTask) -> Floats:
    """Return the peak of each tenant alone on the server."""
    of_model = [50.0 + zlib.crc32(tenant.model.encode()) % 200 for tenant in task.tenants]
    faster = 0.8 if task.server.runtime == "openvino" else 1.0
    return np.array(of_model) * faster * task.server.cores**0.9


def _direction(task: MeasureTask) -> Floats:
    weights = np.array(_run(task).weights or (1,), float)
    return weights / weights.sum() * (_capacity_rps(task) if len(weights) > 1 else 1.0)


def _limit(task: MeasureTask, direction: Floats) -> float:
    gain = GAIN if len(direction) > 1 else 1.0
    return float(gain / (direction / _capacity_rps(task)).sum())


def _run(task: MeasureTask) -> Run:
    return Run.model_validate(task.run)


def _requests(
    rng: np.random.Generator,
    slas: Sequence[Sla],
    rates_rps: Floats,
    count: int,
    factor: float,
    start_ns: int,
) -> list[Requests]:
    """Return the requests of each tenant in a window with `count` Poisson arrivals in total."""
    found = []
    for sla, rate in zip(slas, rates_rps, strict=True):
        n = round(count * rate / rates_rps.sum())
        gaps_s = rng.exponential(1 / rate if rate else 1.0, n)
        intended = start_ns + (1e9 * np.cumsum(gaps_s)).astype(np.int64)
        median_ms = sla.latency_ms / 3 * max(factor, 1) ** 4
        took_ns = np.exp(rng.normal(np.log(median_ms), 0.55, n)) * MS
        lag_ns = rng.exponential(5e4, n)
        found.append(
            Requests(
                intended,
                intended + lag_ns.astype(np.int64),
                intended + (lag_ns + took_ns).astype(np.int64),
                np.full(n, Status.OK, np.uint8),
            )
        )
    return found


@cache
def _judged(factor: float) -> dict[str, Any]:
    """Return the results of a window with 2,000 requests at a load of `factor` times the limit."""
    rng = np.random.default_rng(1)
    (requests,) = _requests(rng, [SLA], np.array([200.0]), 2000, factor, _start_ns(0))
    seen = Observation(_start_ns(0), 11.0, (requests,), (0.05,))
    told = judge(seen, 0, SLA, rate_rps=200.0, settle_s=SETTLE_S, grace_s=GRACE_S, confidence=0.95)
    return told.as_dict()


def _rows(
    task: MeasureTask, window: int, phase: Phase, factor: float, scale: float, rates_rps: Floats
) -> Iterator[dict[str, Any]]:
    judged = _judged(factor)
    for tenant, rate in zip(task.tenants, rates_rps, strict=True):
        slower = tenant.sla.latency_ms / SLA.latency_ms
        told = {
            key: value * slower if key.endswith("_ms") and isinstance(value, float) else value
            for key, value in judged.items()
        }
        yield row_of(told) | {
            "window": window,
            "phase": phase,
            "scale": np.nan if phase in (Phase.ALONE, Phase.PROBE) else scale,
            "elapsed_s": 11.0,
            "requests": judged["requests"] if rate else 0,
            "start_ns": _start_ns(window),
            "window_verdict": judged["verdict"],
            "tenant": tenant.name,
            "offered_rps": rate,
        }


def _samples(task: MeasureTask) -> Iterator[Sample]:
    for second in range(SAMPLES_S):
        at = 10**12 + second * 10**9
        yield Sample(at, "server_cpu_cores", None, 0.9 * task.server.cores)
        yield Sample(at, "client_cpu_cores", None, 0.05)
        yield Sample(at, "server_rss_bytes", None, 2.8e8 + 1e6 * second)


def _record(
    task: MeasureTask, direction: Floats, limit: float, rng: np.random.Generator
) -> Mapping[str, Any]:
    names = task.tenant_names
    capacity = dict(zip(names, _capacity_rps(task).tolist(), strict=True))
    busy = {name: 1.1 * rate for name, rate in capacity.items()}
    estimate = limit * float(np.exp(rng.normal(0, 0.01)))
    return record_of(task) | {
        "line": {"base_rps": [0.0] * len(names), "direction_rps": direction.tolist()},
        "weights": list(_run(task).weights),
        "dedicated_rps": {} if _run(task) == DEDICATED else capacity,
        "estimate_scale": estimate,
        "certified_scale": 0.9 * limit,
        "certified_window": CERTIFIED,
        "first_failing_scale": 1.15 * limit,
        "cliff": "",
        "speeds_rps": {name: [rate] * LOOKS for name, rate in busy.items()},
        "work_ms": {name: (1000 / rate * WORK).tolist() for name, rate in busy.items()},
        "posterior_scales": (estimate * np.exp(rng.normal(0, 0.02, POSTERIOR))).tolist(),
    }
