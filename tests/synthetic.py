"""Raw results with a known truth: records alone, or all files of a study.

Tenant i alone reaches `capacities[i]`; a shared server on any line reaches the point where
sum(r_i / C_i) = gain. Estimates scatter around that by `between` (from repeat to repeat) and
`within` (from batch to batch), both as standard deviations of the logarithm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from perseus.host.files import write_json
from perseus.measurement import raw_results as raw
from perseus.measurement.monitor import MONITOR_SCHEMA
from perseus.peak.system import Observation
from perseus.peak.verdict import judge
from perseus.results import cost
from perseus.study.sla import Sla
from perseus.traffic.requests import MS, Requests, Status

Record = dict[str, Any]
SLA_MS = {"resnet18": 120.0, "mobilenet_v3_large": 60.0}
SLOWDOWN = 1.25
"""Latency beside the other tenants / alone, at equal rates."""
MIXES = ((3, 1), (1, 1), (1, 3))


@dataclass(frozen=True)
class Truth:
    """What the records scatter around."""

    capacities: Mapping[str, float]
    gain: float = 1.25
    between: float = 0.01
    within: float = 0.02
    repeats: int = 2
    bootstraps: int = 200


TRUTH = Truth({"resnet18": 30.0, "mobilenet_v3_large": 90.0})
PRICE = {
    "instance": "n1-standard-1",
    "region": "us-central1",
    "on_demand_usd_per_hour": 0.0475,
    "spot_usd_per_hour": 0.01306,
    "source": "a catalogue @ 006059e",
}
SETTINGS = {
    "study": "synthetic",
    "seed": 1,
    "pricing": ["on_demand", "spot"],
    "prices": {"cpu1": PRICE},
}


def records(
    truth: Truth = TRUTH,
    seed: int = 0,
    mixes: Sequence[tuple[int, ...]] = MIXES,
    holds: Sequence[tuple[str, int]] = (("resnet18", 50), ("mobilenet_v3_large", 50)),
) -> list[Record]:
    """The records of a whole study, dedicated cells first."""
    rng, names = np.random.default_rng(seed), list(truth.capacities)
    made, peaks = [], {}
    for name in names:
        line = {"kind": "dedicated", "name": "peak", "weights": [], "held": "", "held_percent": 0}
        cells = _repeats(truth, rng, (name,), name, line, {}, (0.0,), (1.0,))
        peaks[name] = float(np.mean([cell["estimate_scale"] for cell in cells]))
        made += cells
    everyone = tuple(names)
    for weights in mixes:
        direction = tuple(
            weight / sum(weights) * peaks[name] for weight, name in zip(weights, names, strict=True)
        )
        line = {"kind": "mix", "name": "mix-" + "-".join(map(str, weights))}
        line |= {"weights": list(weights), "held": "", "held_percent": 0}
        zero = (0.0,) * len(names)
        made += _repeats(truth, rng, everyone, "shared", line, peaks, zero, direction)
    for held, percent in holds:
        base = tuple(percent / 100 * peaks[n] if n == held else 0.0 for n in names)
        direction = tuple(0.0 if n == held else peaks[n] / (len(names) - 1) for n in names)
        line = {"kind": "hold", "name": f"hold-{held}-{percent}", "weights": []}
        line |= {"held": held, "held_percent": percent}
        made += _repeats(truth, rng, everyone, "shared", line, peaks, base, direction)
    return made


def _repeats(
    truth: Truth,
    rng: np.random.Generator,
    names: tuple[str, ...],
    scenario: str,
    line: Record,
    peaks: Mapping[str, float],
    base: tuple[float, ...],
    direction: tuple[float, ...],
) -> list[Record]:
    capacity = np.array([truth.capacities[name] for name in names])
    gain = truth.gain if len(names) > 1 else 1.0
    limit = (gain - (np.array(base) / capacity).sum()) / (np.array(direction) / capacity).sum()
    cells = []
    for repeat in range(1, truth.repeats + 1):
        estimate = limit * np.exp(rng.normal(0, truth.between) + rng.normal(0, truth.within))
        scatter = np.exp(rng.normal(0, truth.within, truth.bootstraps))
        cell = {
            "study": "synthetic",
            "cell": f"cpu1.{scenario}.{line['name']}.r{repeat}",
            "scenario": f"cpu1.{scenario}",
            "repeat": repeat,
            "seed": 1,
            "line": line,
            "server": {
                "name": "cpu1",
                "device": "cpu",
                "launcher": "embedded",
                "runtime": "onnxruntime",
                "cores": 1,
            },
            "tenants": [
                {
                    "name": name,
                    "model": name,
                    "max_batch_size": 8,
                    "request_batch_size": 1,
                    "precision": "fp32",
                    "sla_percentile": 95.0,
                    "sla_ms": SLA_MS.get(name, 100.0),
                }
                for name in names
            ],
            "precision": "quick",
            "settings": {"confidence": 0.95},
            "arrivals": {"process": "poisson", "cv": 1.0},
        }
        cells.append(
            {
                "cell": cell,
                "host": {
                    "cpu": "A processor",
                    "cpus": 2,
                    "memory_bytes": 25 * 2**30,
                    "kernel": "6.1",
                    "cpu_governor": None,
                    "server_cores": [1],
                    "client_cores": [0],
                    "python": "3.11.7",
                    "packages": {"numpy": "1.26.4", "nvidia-pytriton": "0.7.0"},
                },
                "started": {"monotonic_ns": 10**12, "unix_ns": 1_700_000_000 * 10**9},
                "finished_monotonic_ns": 10**12 + 100 * 10**9,
                "startup_s": 1.1,
                "triton_version": "2.51.0",
                "round_trip_p50_ms": 0.3,
                "first_inference_ms": dict.fromkeys(names, 30.0),
                "relative_errors": dict.fromkeys(names, 1e-6),
                "outcome": "ok",
                "reason": "",
                "line": {"base_rps": list(base), "direction_rps": list(direction)},
                "estimate_scale": float(estimate),
                "certified_scale": float(0.9 * estimate),
                "certified_window": 7,
                "first_failing_scale": float(1.15 * estimate),
                "cliff": "",
                "bootstrap_scales": (estimate * scatter).tolist(),
                "requests": 20000,
                "measured_s": 90.0,
                "unloaded_p50_ms": {name: SLA_MS.get(name, 100.0) / 5 for name in names},
                "dedicated_rps": dict(peaks),
                "errors": {name: {} for name in names},
                "gpu_watts": None,
            }
        )
    return cells


def spoil(record: Record, outcome: str, reason: str) -> Record:
    """The record as the search leaves it with that outcome."""
    nothing: Record = {}
    if outcome != "uncertified":
        nothing |= {"estimate_scale": None, "bootstrap_scales": [], "first_failing_scale": None}
    if outcome != "client_limited":
        nothing |= {"certified_scale": None, "certified_window": -1}
    return record | nothing | {"outcome": outcome, "reason": reason}


def with_failures(made: Sequence[Record]) -> list[Record]:
    """Every way not to be ok, each on a line of its own."""
    spoilt = {
        "mix-3-1": ("infeasible", "the SLA fails at every rate tested (7.1% over 120 ms)"),
        "mix-1-3": ("client_limited", "the client used 91% of its core"),
        "hold-resnet18-50": ("uncertified", "no rate passed with confidence (1.0% to 6.2%)"),
        "hold-mobilenet_v3_large-50": ("failed", "the server died in mid-run"),
    }
    names = [record["cell"]["line"]["name"] for record in made]
    return [
        spoil(record, *spoilt[name]) if name in spoilt else dict(record)
        for record, name in zip(made, names, strict=True)
    ]


@contextmanager
def few_fleet_draws() -> Iterator[None]:
    """For tests that do not look at the intervals of whole fleets, which take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "FLEET_DRAWS", 3)
        yield


def compared_rows(record: Record) -> list[dict[str, Any]]:
    """What `tables.compared_rows` reads, without files."""
    rows = [row for row, _ in window_rows(record)] if record["certified_window"] >= 0 else []
    return [r for r in rows if r["window"] == record["certified_window"] or r["phase"] == "alone"]


def window_rows(record: Record) -> list[tuple[dict[str, Any], Requests]]:
    """Eight windows around the limit and each tenant alone, with their requests.

    They are judged by the real rules. Alone, a tenant is faster by the factor SLOWDOWN.
    """
    limit = record["estimate_scale"] or record["certified_scale"] or 0.5
    rng, start_ns, made = np.random.default_rng(int(1e6 * limit)), 10**12 + 2 * 10**9, []
    certified, tenants = (record["certified_scale"] or 0) / limit, record["cell"]["tenants"]
    factors = [0.7, 1.4, 1.0, 1.15, 0.95, 1.05, 1.1, certified]
    phases = ["bracket", "bracket", "bisect", "root", "root", "root", "root", "confirm"]
    busy = [range(len(tenants))] * len(phases)
    if len(tenants) > 1:
        factors += [certified] * len(tenants)
        phases += ["alone"] * len(tenants)
        busy += [range(i, i + 1) for i in range(len(tenants))]
    for window, (factor, phase, loaded) in enumerate(zip(factors, phases, busy, strict=True)):
        if record["certified_scale"] is None and phase in ("confirm", "alone"):
            continue
        parts = []
        for i, tenant in enumerate(tenants):
            base, step = (record["line"][p][i] for p in ("base_rps", "direction_rps"))
            rate, n = (base + factor * limit * step, 400) if i in loaded else (0.0, 0)
            sla = Sla(tenant["sla_percentile"], tenant["sla_ms"])
            intended = start_ns + np.arange(n) * 20_000_000
            median = sla.latency_ms / 3 * min(factor, 1) * max(factor, 1) ** 4
            median /= SLOWDOWN if phase == "alone" else 1
            latency_ns = np.exp(rng.normal(np.log(median), 0.55, n)) * MS
            requests = Requests(
                intended,
                intended + 100_000,
                intended + latency_ns.astype(np.int64),
                np.full(n, Status.OK, np.uint8),
            )
            seen = judge(
                Observation(start_ns, 8.0, (requests,), (0.05,)),
                0,
                sla,
                rate_rps=rate,
                settle_s=1.0,
                grace_s=0.24,
                confidence=0.95,
            )
            parts.append((tenant["name"], seen, requests))
        verdicts = {str(seen.verdict) for _, seen, _ in parts}
        worst = next((v for v in ("invalid", "fail", "undecided") if v in verdicts), "pass")
        made += [
            (
                {
                    "window": window,
                    "phase": phase,
                    "scale": np.nan if phase == "alone" else factor * limit,
                    "elapsed_s": 8.0,
                    "settle_s": 1.0,
                    "start_ns": start_ns,
                    "window_verdict": worst,
                    "tenant": name,
                    **seen.as_dict(),
                    "queue_ms": 0.4 * seen.p50_ms,
                    "compute_input_ms": 0.1,
                    "compute_ms": 0.5 * seen.p50_ms,
                    "compute_output_ms": 0.2,
                    "client_ms": 1.0,
                },
                requests,
            )
            for name, seen, requests in parts
        ]
        start_ns += 9 * 10**9
    return made


LEVELS = (1, 4, 16)


def sweep_record() -> Record:
    """A closed loop of both tenants on a server that carries 100 requests/s of each."""
    search = with_failures(records(Truth(TRUTH.capacities, repeats=1)))[-1]
    line = {"kind": "concurrency", "name": "concurrency", "concurrencies": list(LEVELS)}
    named = {"line": line, "cell": "cpu1.shared.concurrency.r1"}
    parts = ("line", "dedicated_rps", "estimate_scale", "certified_scale", "certified_window")
    searched = {*parts, "first_failing_scale", "cliff", "bootstrap_scales"}
    levels = [
        {
            "concurrency": level,
            "tenant": tenant,
            "answered_rps": min(25.0 * level, 100.0),
            "low_rps": 0.98 * min(25.0 * level, 100.0),
            "high_rps": 1.02 * min(25.0 * level, 100.0),
        }
        for level in LEVELS
        for tenant in TRUTH.capacities
    ]
    kept = {key: value for key, value in search.items() if key not in searched}
    return kept | {
        "cell": search["cell"] | named,
        "outcome": "ok",
        "reason": "",
        "levels": levels,
    }


def write_sweep(results: Path) -> Path:
    """Its files; the level 16 is invalid. Returns the folder."""
    folder, rows = results / "raw/cpu1.shared.concurrency.r1", []
    searched = next(r for r in records() if r["cell"]["line"]["name"] == "mix-1-1")
    like = [row for row, _ in window_rows(searched) if row["phase"] == "confirm"]
    for window, level in enumerate(LEVELS):
        verdict = "invalid" if level == 16 else "pass"
        told = {"phase": "concurrency", "scale": float(level), "window": window}
        told |= {"window_verdict": verdict, "reason": "the client used 90% of its core"}
        rows += [row | told for row in like]
    write_json(folder / "record.json", sweep_record())
    raw.write_windows(folder / "windows.parquet", rows)
    return folder


def ceiling(names: Sequence[str] = tuple(TRUTH.capacities)) -> Record:
    """What a client that can offer 900 requests/s leaves in ceilings/cpu1.json."""
    return {
        "server": "cpu1",
        "client": {"protocol": "grpc", "shared_memory": False, "processes": None},
        "processes": 1,
        "started_unix_ns": 1_700_000_000 * 10**9,
        "host": {"client_cores": [0]},
        "shapes": [
            {
                "input_px": 224,
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
            }
        ],
    }


def _tried(rate_rps: float, lag_ms: float, reason: str) -> Record:
    return {
        "rate_rps": rate_rps,
        "send_lag_p99_ms": lag_ms,
        "client_cpu": 0.5,
        "valid": not reason,
        "reason": reason,
    }


def write(results: Path, made: Sequence[Record]) -> list[Path]:
    """All raw files of the cells; returns their folders."""
    folders = []
    for record in made:
        folder = results / "raw" / record["cell"]["cell"]
        folders.append(folder)
        rows = window_rows(record)
        write_json(folder / "record.json", record)
        raw.write_windows(folder / "windows.parquet", [row for row, _ in rows])
        with raw.RequestsWriter(folder / "requests.parquet") as writer:
            for window in sorted({row["window"] for row, _ in rows}):
                here = [(row["tenant"], part) for row, part in rows if row["window"] == window]
                writer.add(window, *map(list, zip(*here, strict=True)))
        _write_monitor(folder / "monitor.parquet", len(rows))
    return folders


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
