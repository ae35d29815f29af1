"""The load line of a cell in requests/s, from the dedicated peaks that were measured before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from perseus.peak import stats
from perseus.peak.load_line import LoadLine
from perseus.peak.outcome import Outcome


def dedicated_peaks(records: Sequence[Path]) -> dict[str, float]:
    """Each tenant's dedicated peak in requests/s: the mean estimate of its repeats.

    Of those that found a limit of the server; NaN when none did. On a dedicated load line the scale
    is the rate itself.
    """
    found: dict[str, list[float]] = {}
    for path in records:
        record = json.loads(path.read_text())
        (tenant,) = record["cell"]["tenants"]
        scales = found.setdefault(tenant["name"], [])
        if record["outcome"] in (Outcome.OK, Outcome.UNCERTIFIED):
            scales.append(record["estimate_scale"])
    return {name: float(np.mean(s)) if s else float("nan") for name, s in found.items()}


def load_line(
    spec: Mapping[str, Any],
    names: Sequence[str],
    peaks_rps: Mapping[str, float],
    unloaded_ms: Mapping[str, np.ndarray],
) -> tuple[LoadLine, float]:
    """The load line in requests/s, and the scale to begin at, from a slice of the plan.

    The scale of a dedicated line is in requests/s. On the others s = 1 (for "hold": one minus the
    held fraction) is where sharing neither gains nor loses.
    """
    if spec["kind"] == "dedicated":
        served_alone_rps = 1000 / stats.percentile(unloaded_ms[names[0]], 50)
        return LoadLine((0.0,), (1.0,)), 0.6 * served_alone_rps
    if spec["kind"] == "mix":
        total = sum(spec["weights"])
        shares = [weight / total for weight in spec["weights"]]
        direction = tuple(s * peaks_rps[n] for s, n in zip(shares, names, strict=True))
        return LoadLine((0.0,) * len(names), direction), 0.8
    held = spec["held_percent"] / 100
    others = len(names) - 1
    base = tuple(held * peaks_rps[n] if n == spec["held"] else 0.0 for n in names)
    direction = tuple(0.0 if n == spec["held"] else peaks_rps[n] / others for n in names)
    return LoadLine(base, direction), 0.8 * (1 - held)
