"""Synthetic records and windows of cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perseus.study.tasks.measure import MeasureTask

SETTLE_S, GRACE_S = 1.0, 0.24
"""Settling time and excluded last part of every window, in seconds."""


def record_of(task: MeasureTask) -> dict[str, Any]:
    """Return the record.json of a successful cell, without the findings of its experiment."""
    names = task.tenant_names
    return {
        "cell": task.plain(),
        "host": {
            "cpu": "A processor",
            "cpus": 2,
            "memory_bytes": 25 * 2**30,
            "kernel": "6.1",
            "topology": {
                "tells_siblings": True,
                "shared_by_server_and_client": [],
                "server_nodes": [0],
                "client_nodes": [0],
            },
            "cpu_governor": None,
            "server_cores": [1],
            "client_cores": [0],
            "python": "3.11.7",
            "packages": {"numpy": "1.26.4", "nvidia-pytriton": "0.7.0"},
        },
        "started": {"monotonic_ns": 10**12, "unix_ns": 1_700_000_000 * 10**9},
        "finished_monotonic_ns": 10**12 + 100 * 10**9,
        "attempt": 1,
        "attempts": [{"outcome": "ok", "reason": ""}],
        "startup_s": 1.1,
        "server_name": "triton",
        "triton_version": "2.51.0",
        "tells_statistics": True,
        "image_id": None,
        "round_trip_p50_ms": 0.3,
        "first_inference_ms": dict.fromkeys(names, 30.0),
        "relative_errors": dict.fromkeys(names, 1e-6),
        "computed_precisions": {tenant.name: tenant.precision for tenant in task.tenants},
        "max_batch_sizes": {tenant.name: tenant.max_batch_size for tenant in task.tenants},
        "served_models": {},
        "outcome": "ok",
        "reason": "",
        "requests": 20000,
        "measured_s": 90.0,
        "unloaded_p50_ms": {tenant.name: tenant.sla.latency_ms / 5 for tenant in task.tenants},
        "unseen_p50_ms": {},
        "unbatched_limit_rps": {},
        "traces": {},
        "throttled": None,
        "warnings": [],
        "request_bytes": dict.fromkeys(names, 602112.0),
        "client_preprocess_ms": {},
        "errors": {name: {} for name in names},
        "gpu_watts": None,
        "host_watts": None,
    }


def row_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of windows.parquet with the results `told` (from `verdict.judge`), without the
    columns that name the window and the tenant."""
    return {
        "attempt": 1,
        "settle_s": SETTLE_S,
        **told,
        "queue_ms": 0.4 * told["p50_ms"],
        "compute_input_ms": 0.1,
        "compute_ms": 0.5 * told["p50_ms"],
        "compute_output_ms": 0.2,
        "client_ms": 1.0,
        "client_cpu_ms": 0.4,
        "server_cpu_ms": 12.5,
    }
