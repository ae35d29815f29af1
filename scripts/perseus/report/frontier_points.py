"""Compute the points that figures of the frontier mark: the rates of two tenants at the estimate of
a load line, at its certified rate, and so on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from perseus.peak.stats import Floats

PREDICTED: Final = "predicted"
"""Value of `Marker.scale` at the estimate of a mix that was predicted, not measured."""


@dataclass(frozen=True)
class Marker:
    """A point of a load line: `rates_rps` has the rates of both tenants, shape (2,).

    `scale` is the kind of the point: "estimate", "certified", "first_failing", "ci_low" or
    "ci_high" (the ends of the interval of the estimate), or PREDICTED. `mix` is the label of the
    load line.
    """

    scale: str
    mix: str
    rates_rps: Floats


def dedicated_markers(alone: pd.Series, place: int, scales: Sequence[str]) -> Iterator[Marker]:
    """Yield one marker for each kind of point in `scales` on the dedicated load line of one tenant.
    `alone` is the row of the load line in the table peaks. `place` is 0 for the first tenant, and 1
    for the second tenant."""
    for scale in scales:
        rates = alone[f"{scale}_rps"] * np.eye(2)[place]
        yield Marker(scale, f"{alone['mix']} alone", rates)


def shared_markers(
    line: pd.Series, tenants: pd.DataFrame, scales: Sequence[str]
) -> Iterator[Marker]:
    """Yield one marker for each kind of point in `scales` on a shared load line. The rates are
    converted to the speed of the host during the dedicated peaks.

    `line` is the row of the load line in the table peaks, and `tenants` has the rows of both
    tenants in the table tenants.
    """
    speed = relative_speed(line, tenants)
    base, step = (tenants[f"{of}_rps"].to_numpy() / speed for of in ("base", "direction"))
    for scale in scales:
        is_predicted = scale == "estimate" and line["verdict"] == "predicted"
        rates = base + line[f"{scale}_scale"] * step
        yield Marker(PREDICTED if is_predicted else scale, str(line["mix"]), rates)


def relative_speed(line: pd.Series, tenants: pd.DataFrame) -> float:
    """Return the speed of the host while the shared peak was measured, divided by its speed while
    the dedicated peaks were measured. If the relative speed is unknown, return 1.

    The relative speed is the sum over the tenants of (rate at the shared peak / dedicated peak),
    divided by the sharing ratio. The sum and the ratio differ by the relative speed, since only the
    sharing ratio is corrected for the speed of the host.
    """
    rates_rps = tenants["base_rps"] + line["estimate_scale"] * tenants["direction_rps"]
    speed = float((rates_rps / tenants["dedicated_rps"]).sum(skipna=False) / line["sharing_ratio"])
    return speed if np.isfinite(speed) and speed > 0 else 1.0
