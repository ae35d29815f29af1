"""Tables of what was not searched: the client's ceilings, and closed loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perseus.results.repeats import Record, number
from perseus.peak.verdict import Verdict

Row = dict[str, Any]


def ceilings(record: Record) -> Iterator[Row]:
    """A row per size of request, from a file of ceilings."""
    client = record["client"]
    for shape in record["shapes"]:
        valid = [each for each in shape["open"] if each["valid"]]
        found = valid[0] if valid else {}
        ceiling_rps = number(found.get("rate_rps"))
        tried = [each["rate_rps"] for each in shape["open"]]
        at_most = max(shape["closed"], key=lambda each: each["rate_rps"])
        yield {
            "server": record["server"],
            "models": " + ".join(shape["models"]),
            "input_px": shape["input_px"],
            "request_batch_size": shape["request_batch_size"],
            "request_bytes": shape["request_bytes"],
            "protocol": client["protocol"],
            "shared_memory": client["shared_memory"],
            "client_cores": len(record["host"]["client_cores"]),
            "processes": record["processes"],
            "ceiling_rps": ceiling_rps,
            "first_invalid_rps": min((r for r in tried if not r <= ceiling_rps), default=np.nan),
            "send_lag_p99_ms": number(found.get("send_lag_p99_ms")),
            "client_cpu": number(found.get("client_cpu")),
            "closed_loop_rps": at_most["rate_rps"],
            "closed_loop_concurrency": at_most["concurrency"],
            "cpu_us_per_request": at_most["cpu_us_per_request"],
        }


_FROM_LOOP = (
    "requests",
    "effective_requests",
    "batches",
    "errors",
    "p50_ms",
    "p95_ms",
    "p95_low_ms",
    "p95_high_ms",
    "p99_ms",
    "queue_ms",
    "client_ms",
    "client_cpu",
)


def concurrency(record: Record, windows: Sequence[Row]) -> Iterator[Row]:
    """A row per level and tenant, from the record and the windows of a sweep."""
    cell = record["cell"]
    at = {(int(row["scale"]), row["tenant"]): row for row in windows}
    models = {tenant["name"]: tenant["model"] for tenant in cell["tenants"]}
    for level in record["levels"]:
        seen = at[level["concurrency"], level["tenant"]]
        invalid = seen["window_verdict"] == Verdict.INVALID
        yield {
            "study": cell["study"],
            "server": cell["server"]["name"],
            "scenario": cell["scenario"],
            "cell": cell["cell"],
            "repeat": cell["repeat"],
            "tenant": level["tenant"],
            "model": models[level["tenant"]],
            "concurrency": level["concurrency"],
            "answered_rps": level["answered_rps"],
            "low_rps": number(level["low_rps"]),
            "high_rps": number(level["high_rps"]),
            **{name: seen[name] for name in _FROM_LOOP},
            "compute_ms": compute_ms(seen),
            "valid": not invalid,
            "reason": seen["reason"] if invalid else "",
        }


def compute_ms(seen: Mapping[str, Any]) -> float:
    """The mean time of input, network and output in the server; NaN if a part is missing."""
    parts = ("compute_input_ms", "compute_ms", "compute_output_ms")
    return sum(number(seen.get(name)) for name in parts)
