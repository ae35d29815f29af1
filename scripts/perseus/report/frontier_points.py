"""Compute points of load lines of two tenants: the rates of both tenants at the estimate and at
other load factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from perseus.peak.stats import Floats

PREDICTED: Final = "predicted"
"""Value of `scale` for a predicted mix, in place of "estimate"."""


@dataclass(frozen=True)
class Marker:
    """Rates of both tenants, shape (2,), at a point of a load line.

    `scale` is "estimate", "certified", "first_failing", an end of the interval, or PREDICTED.
    """

    scale: str
    mix: str
    rates_rps: Floats


def dedicated_markers(alone: pd.Series, place: int, scales: Sequence[str]) -> Iterator[Marker]:
    """Yield the markers of the dedicated load line of one tenant; `alone` is its row of the table
    peaks."""
    for scale in scales:
        rates = alone[f"{scale}_rps"] * np.eye(2)[place]
        yield Marker(scale, f"{alone['mix']} alone", rates)


def shared_markers(
    line: pd.Series, tenants: pd.DataFrame, scales: Sequence[str]
) -> Iterator[Marker]:
    """Yield the markers of a shared load line, given its row of the table peaks and the rows of its
    two tenants."""
    speed = relative_speed(line, tenants)
    base, step = (tenants[f"{of}_rps"].to_numpy() / speed for of in ("base", "direction"))
    for scale in scales:
        is_predicted = scale == "estimate" and line["verdict"] == "predicted"
        rates = base + line[f"{scale}_scale"] * step
        yield Marker(PREDICTED if is_predicted else scale, str(line["mix"]), rates)


def relative_speed(line: pd.Series, tenants: pd.DataFrame) -> float:
    """Return the number by which rates are divided to correct them for the speed of the host; 1 if
    unknown.

    With the corrected rates, the sum of rate / dedicated peak equals the sharing ratio.
    """
    rates_rps = tenants["base_rps"] + line["estimate_scale"] * tenants["direction_rps"]
    speed = float((rates_rps / tenants["dedicated_rps"]).sum(skipna=False) / line["sharing_ratio"])
    return speed if np.isfinite(speed) and speed > 0 else 1.0
