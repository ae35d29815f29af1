"""Compute the points in figures of a frontier. Each point is a pair of rates of two tenants, for
example at the estimate or at the certified rate of a load line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from perseus.peak.stats import Floats

PREDICTED: Final = "predicted"
"""Value of `Marker.scale` for the estimate of a mix that Perseus predicted but did not measure."""


@dataclass(frozen=True)
class Marker:
    """A point of a load line: `rates_rps` has the rates of both tenants, shape (2,).

    `scale` is the kind of the point: "estimate", "certified", "first_failing", PREDICTED, or an end
    of the interval of the estimate ("ci_low" or "ci_high"). `mix` is the label of the load line.
    """

    scale: str
    mix: str
    rates_rps: Floats


def dedicated_markers(alone: pd.Series, place: int, scales: Sequence[str]) -> Iterator[Marker]:
    """Yield the points of a tenant on a dedicated server, one for each kind in `scales`.

    `alone` is the row of the dedicated load line in the table peaks. `place` is the index of the
    tenant in a pair of rates: 0 or 1.
    """
    for scale in scales:
        rates = alone[f"{scale}_rps"] * np.eye(2)[place]
        yield Marker(scale, f"{alone['mix']} alone", rates)


def shared_markers(
    line: pd.Series, tenants: pd.DataFrame, scales: Sequence[str]
) -> Iterator[Marker]:
    """Yield the points of a shared load line, one for each kind in `scales`.

    The rates are converted to the speed that the host had while the dedicated peaks were measured.
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
    """Return the relative speed of the host during the search on the shared server.

    The result is relative to the speed during the searches on dedicated servers. If this relative
    speed is unknown, return 1. Without correction, the sharing ratio would be the sum of (rate at
    the shared peak / dedicated peak) over all tenants. The sharing ratio in the table is this sum,
    divided by the relative speed. Therefore the function divides the sum by the sharing ratio.
    """
    rates_rps = tenants["base_rps"] + line["estimate_scale"] * tenants["direction_rps"]
    speed = float((rates_rps / tenants["dedicated_rps"]).sum(skipna=False) / line["sharing_ratio"])
    return speed if np.isfinite(speed) and speed > 0 else 1.0
