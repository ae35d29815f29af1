"""The raw files of synthetic studies, and the tables of these files."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import synthetic
from synthetic import Plain

from benchmarks.records import GRACE_S, SETTLE_S, row_of
from perseus.host.files import write_json
from perseus.measurement import raw_results
from perseus.measurement.monitor_schema import MONITOR_SCHEMA
from perseus.peak.system import Observation
from perseus.peak.verdict import judge
from perseus.results import tables
from perseus.results.predictions import Predictions
from perseus.results.study_results import StudyResults
from perseus.study.sla import Sla
from perseus.study.tasks.predictions import PredictionsTask
from perseus.study.tasks.tables import TablesTask
from perseus.traffic.requests import MS, Requests, Status

NAMES = tuple(synthetic.TRUTH.capacities)
IN_TABLES = ("certify", "alone")
"""The phases of a search whose windows the tables read."""


def window_rows(record: Plain, only: tuple[str, ...] = ()) -> list[tuple[dict[str, Any], Requests]]:
    """Return the rows and requests of the windows around the limit, of each tenant alone, and of
    the saturation probes.

    If `only` names phases, return only the windows of these phases. The rules of Perseus judge the
    windows. The latency of a tenant alone is lower by the factor synthetic.SLOWDOWN.
    """
    limit = record["estimate_scale"] or record["certified_scale"] or 0.5
    seen = record["cell"]["tenants"], record["line"]
    rows = _window_rows(limit, record["certified_scale"], json.dumps(seen), only)
    return [(dict(row), requests) for row, requests in rows]


@lru_cache(maxsize=256)  # an entry has 200 kB
def _window_rows(
    limit: float, certified_scale: float | None, seen: str, only: tuple[str, ...]
) -> list[tuple[dict[str, Any], Requests]]:
    tenants, line = json.loads(seen)
    rng, start_ns, made = np.random.default_rng(int(1e6 * limit)), 10**12 + 2 * 10**9, []
    certified = (certified_scale or 0) / limit
    factors = [0.7, 1.4, 1.0, 1.15, 0.95, 1.05, 1.1, certified]
    phases = [
        "bracket",
        "bracket",
        "bisect",
        "near_limit",
        "near_limit",
        "near_limit",
        "near_limit",
        "certify",
    ]
    busy = [range(len(tenants))] * len(phases)
    each_alone = [range(i, i + 1) for i in range(len(tenants))]
    if len(tenants) > 1:
        factors += [certified] * len(tenants)
        phases += ["alone"] * len(tenants)
        busy += each_alone
    factors += [1.0] * len(tenants)
    phases += ["probe"] * len(tenants)
    busy += each_alone
    for window, (factor, phase, loaded) in enumerate(zip(factors, phases, busy, strict=True)):
        if certified_scale is None and phase in ("certify", "alone"):
            continue
        parts = []
        for i, tenant in enumerate(tenants):
            base, step = (line[p][i] for p in ("base_rps", "direction_rps"))
            rate = base + factor * limit * step if i in loaded else 0.0
            n = 400 if rate else 0
            sla = Sla.model_validate(tenant["sla"])
            intended = start_ns + np.arange(n) * 20_000_000
            median = sla.latency_ms / 3 * min(factor, 1) * max(factor, 1) ** 4
            median /= synthetic.SLOWDOWN if phase == "alone" else 1
            latency_ns = np.exp(rng.normal(np.log(median), 0.55, n)) * MS
            requests = Requests(
                intended,
                intended + 100_000,
                intended + latency_ns.astype(np.int64),
                np.full(n, Status.OK, np.uint8),
            )
            if only and phase not in only:
                continue
            seen = judge(
                Observation(start_ns, 8.0, (requests,), (0.05,)),
                0,
                sla,
                rate_rps=rate,
                settle_s=SETTLE_S,
                grace_s=GRACE_S,
                confidence=0.95,
            )
            parts.append((tenant["name"], seen, requests))
        if not parts:
            start_ns += 9 * 10**9
            continue
        verdicts = {str(seen.verdict) for _, seen, _ in parts}
        worst = next((v for v in ("invalid", "fail", "undecided") if v in verdicts), "pass")
        made += [
            (
                row_of(seen.as_dict())
                | {
                    "window": window,
                    "phase": phase,
                    "scale": np.nan if phase in ("alone", "probe") else factor * limit,
                    "elapsed_s": 8.0,
                    "start_ns": start_ns,
                    "window_verdict": worst,
                    "tenant": name,
                },
                requests,
            )
            for name, seen, requests in parts
        ]
        start_ns += 9 * 10**9
    return made


def write(results: Path, made: Sequence[Plain]) -> list[Path]:
    """Write all raw files of the cells; return their folders."""
    folders = []
    for record in made:
        rows = window_rows(record)
        folder = _write_cell(results, record, [row for row, _ in rows])
        folders.append(folder)
        with raw_results.RequestsWriter(folder / "requests.parquet") as writer:
            for window in sorted({row["window"] for row, _ in rows}):
                here = [(row["tenant"], part) for row, part in rows if row["window"] == window]
                writer.add(*map(list, zip(*here, strict=True)))
        _write_monitor(folder / "monitor.parquet", len(rows))
    return folders


def _write_cell(results: Path, record: Plain, windows: Sequence[Plain]) -> Path:
    """Write the record and the windows of a cell; return its folder."""
    folder = results / "raw" / record["cell"]["cell"]
    write_json(folder / "record.json", record)
    raw_results.write_windows(folder / "windows.parquet", windows)
    return folder


def _certified(names: Sequence[str] = NAMES) -> list[Plain]:
    """Return the rows of a certification window of all tenants together."""
    searched = next(r for r in synthetic.records() if r["cell"]["run"]["name"] == "mix-1-1")
    rows = [row for row, _ in window_rows(searched) if row["phase"] == "certify"]
    return [rows[i % len(rows)] | {"tenant": name} for i, name in enumerate(names)]


def _write_monitor(path: Path, windows: int) -> None:
    rng, rows = np.random.default_rng(windows), []
    for second in range(75):
        time_ns, busy = 10**12 + second * 10**9, 0.5 + 0.4 * np.sin(second / 6)
        values = {
            "server_cpu_cores": busy + rng.normal(0, 0.05),
            "client_cpu_cores": 0.05,
            "server_cores_busy": busy,
            "client_cores_busy": 0.06,
            "server_rss_bytes": 2.8e8 + 1e6 * second,
            "host_memory_used_bytes": 9e8,
        }
        rows += [
            {"time_ns": time_ns, "metric": metric, "tenant": None, "value": float(value)}
            for metric, value in values.items()
        ]
    pq.write_table(pa.Table.from_pylist(rows, MONITOR_SCHEMA), path)


def write_sweep(results: Path, names: Sequence[str] = NAMES) -> Path:
    """Write a cell of closed loops, whose level 16 is invalid; return its folder."""
    return _write_levels(results, synthetic.sweep_record(names), invalid={16})


def write_scaling(results: Path, answered_rps: Mapping[int, float]) -> Path:
    """Write a cell of closed loops with this throughput of each tenant per level.

    All windows are valid. Return the folder of the cell.
    """
    record = synthetic.sweep_record()
    record["levels"] = [
        {"concurrency": level, "tenant": tenant, "answered_rps": rate}
        | {"low_rps": 0.98 * rate, "high_rps": 1.02 * rate}
        for level, rate in answered_rps.items()
        for tenant in synthetic.TRUTH.capacities
    ]
    return _write_levels(results, record)


def _write_levels(results: Path, record: Plain, invalid: Collection[int] = ()) -> Path:
    rows, like = [], _certified([each["name"] for each in record["cell"]["tenants"]])
    levels = dict.fromkeys(each["concurrency"] for each in record["levels"])
    for window, level in enumerate(levels):
        verdict = "invalid" if level in invalid else "undecided"
        told = {"phase": "concurrency", "scale": float(level), "window": window}
        told |= {"window_verdict": verdict, "verdict": verdict}
        first, *others = (row | told for row in like)
        rows.append(first | {"reason": "the client used 90% of its core"})
        rows += [
            row | {"verdict": "undecided", "reason": "a closed loop has no SLA"} for row in others
        ]
    return _write_cell(results, record, rows)


def write_startup(results: Path, names: Sequence[str] = NAMES) -> Path:
    """Write a cell of server starts, which has no windows; return its folder."""
    return _write_cell(results, synthetic.startup_record(names), [])


def write_aa(results: Path) -> Path:
    """Write an A/A cell without windows; return its folder."""
    return _write_cell(results, synthetic.aa_record(), [])


def write_catalogue(results: Path) -> Path:
    """Write a catalogue cell that has no windows; return its folder."""
    return _write_cell(results, synthetic.catalogue_record(), [])


def write_slowdown(results: Path, names: Sequence[str] = NAMES) -> Path:
    """Write a slowdown cell that has no windows; return its folder."""
    return _write_cell(results, synthetic.slowdown_record(names), [])


def write_background(results: Path) -> Path:
    """Write one cell of a search beside background load; return its folder."""
    (folder,) = write(results, synthetic.background_records(percents=(50,))[:1])
    return folder


def write_replay(results: Path, record: Plain | None = None) -> Path:
    """Write a cell of a replay, by default of synthetic.replay_record; return its folder."""
    record = record or synthetic.replay_record()
    rows, like = [], _certified()[0]
    for each in record["offered"]:
        told = {name: each[name] for name in ("window", "phase", "tenant")}
        rows.append(like | told | {"scale": np.nan, "requests": sum(each["requests_each_s"])})
    return _write_cell(results, record, rows)


def write_soak(results: Path, names: Sequence[str] = NAMES) -> Path:
    """Write a soak whose latencies scatter by 3 %; return its folder.

    The first window is invalid, because it is far too slow.
    """
    rows, like = [], _certified(names)
    rng, seconds = np.random.default_rng(0), synthetic.SOAK_WINDOW_S
    for window in range(synthetic.SOAK_WINDOWS):
        told = {"phase": "soak", "scale": np.nan, "window": window, "elapsed_s": seconds}
        told |= {"start_ns": 10**12 + round(window * seconds * 1e9)}
        for row in like:
            slow = np.exp(rng.normal(0, 0.03)) if window else 1000.0
            verdict = "pass" if window else "invalid"
            latency_ms = {name: slow * row[name] for name in ("p50_ms", "sla_percentile_ms")}
            rows.append(row | told | latency_ms | {"verdict": verdict, "window_verdict": verdict})
    return _write_cell(results, synthetic.soak_record(names), rows)


def fail_requests(folder: Path, share: float, first: int = 0, last: int | None = None) -> None:
    """Let the share `share` of a soak's requests fail in the windows `first` to `last` - 1."""
    rows = pq.read_table(folder / "windows.parquet").to_pylist()
    for row in rows:
        if first <= row["window"] and (last is None or row["window"] < last):
            failed = round(share * row["requests"])
            row |= {"errors": failed, "failed": failed}
            row["completed_ratio"] = 1 - failed / row["requests"]
            if share > 0.05:
                row |= dict.fromkeys(("sla_percentile_ms", "p95_ms", "p99_ms"), np.inf)
            if share > 0.01 and row["verdict"] != "invalid":
                row |= {"verdict": "fail", "window_verdict": "fail"}
    raw_results.write_windows(folder / "windows.parquet", rows)


OF_KIND = {
    "concurrency": write_sweep,
    "startup": write_startup,
    "aa": write_aa,
    "slowdown": write_slowdown,
    "replay": write_replay,
    "soak": write_soak,
    "catalogue": write_catalogue,
}
"""The function that writes a cell, for each kind that searches no peak."""

EVERY_KIND = OF_KIND | {"background": write_background}
"""The function that writes a cell, for each kind but `peak`."""


def write_kind(kind: str, results: Path) -> Path:
    """Write a cell of any kind but `peak`; return its folder."""
    assert kind in EVERY_KIND, f"tests/synthetic_files.py: {kind!r} is not in EVERY_KIND"
    return EVERY_KIND[kind](results)


def results_of(
    folder: Path, made: Sequence[Plain], task: TablesTask = synthetic.TASK
) -> StudyResults:
    """Return the results of a study with the windows that the tables read, but without requests."""
    cells = [
        _write_cell(folder, record, [row for row, _ in window_rows(record, IN_TABLES)])
        for record in made
    ]
    write_json(folder / "ceilings/cpu1.json", synthetic.ceiling())
    return StudyResults.read(task, cells, [folder / "ceilings/cpu1.json"])


def all_tables(results: StudyResults) -> dict[str, pa.Table]:
    """Return the tables of both jobs that make tables. The costs of the models are unknown."""
    task = PredictionsTask(study=results.task.study, seed=results.task.seed)
    predictions = Predictions.read(task, [record.folder for record in results.searches], [])
    return tables.make(results) | tables.make_predictions(predictions)


def tables_of(made: Sequence[Plain], task: TablesTask = synthetic.TASK) -> dict[str, pa.Table]:
    with TemporaryDirectory() as folder:
        return all_tables(results_of(Path(folder), made, task))


def write_study(
    folder: Path, made: Sequence[Plain], task: TablesTask = synthetic.TASK, weights: str = "random"
) -> Path:
    """Write the results that comparisons and archives read; return the folder.

    The files are the records, the tables and the records of the exports.
    """
    tables.write(all_tables(results_of(folder, made, task)), folder / "tables")
    for model in {tenant["model"] for record in made for tenant in record["cell"]["tenants"]}:
        told = {"architecture": model, "weights": weights, "seed": 1, "images": []}
        told |= {
            "inputs": [{"dims": [3, 224, 224]}],
            "sha256": f"{weights} {model}",
            "versions": {"torch": "2.13.0"},
        }
        write_json(folder / f"models/{model}/check.json", told)
    return folder
