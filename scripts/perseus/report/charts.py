"""Interactive pictures: their points as JSON, which pictures.js draws and offers as CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from perseus.report.shown import words
from perseus.results.fleets.plans import HOURS_PER_MONTH

VERDICTS: Final = {
    "pass": "#009E73",
    "fail": "#D55E00",
    "undecided": "#0072B2",
    "invalid": "#777777",
}
"""Of windows, with the colours of their points."""
COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")


@dataclass(frozen=True)
class Series:
    """Points of one name. `look` is "points" or "steps"."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    look: str = "points"


@dataclass(frozen=True)
class Chart:
    """`x` and `y` are the words of its axes; `id` names its file of CSV."""

    id: str
    title: str
    x: str
    y: str
    series: Sequence[Series]
    has_logarithm: bool = False

    @property
    def json(self) -> str:
        """What pictures.js reads; safe inside a script element."""
        plain: dict[str, Any] = {
            "id": self.id,
            "x": self.x,
            "y": self.y,
            "log": self.has_logarithm,
            "series": [
                {
                    "name": each.name,
                    "colour": each.colour,
                    "look": each.look,
                    "x": list(map(_number, each.x)),
                    "y": list(map(_number, each.y)),
                }
                for each in self.series
            ],
        }
        return json.dumps(plain, separators=(",", ":")).replace("<", "\\u003c")


def of_windows(windows: pd.DataFrame, line: str) -> Iterator[Chart]:
    """The search as rates over time by verdict, and latencies over the load.

    windows: rows of windows.parquet of all repeats of the load line.
    """
    began_ns = windows.groupby("cell")["start_ns"].transform("min")
    timed = windows.assign(minute=(windows["start_ns"] - began_ns) / 60e9)
    each = timed.groupby(["cell", "window"], sort=False).agg(
        minute=("minute", "min"), rps=("offered_rps", "sum"), verdict=("window_verdict", "first")
    )
    searched = [
        Series(words(str(verdict)), list(rows["minute"]), list(rows["rps"]), _colour(str(verdict)))
        for verdict, rows in each.groupby("verdict", sort=True)
    ]
    yield Chart(
        f"search-{line}",
        "The search: load of each window over time, by verdict",
        "minutes since the start",
        "offered load (requests/s)",
        searched,
    )
    total = timed.groupby(["cell", "window"])["offered_rps"].transform("sum")
    known = timed.assign(total=total)[timed["sla_percentile_ms"].map(math.isfinite)]
    latencies = [
        Series(
            f"{tenant} (SLA {rows['sla_ms'].iloc[0]:g} ms)",
            list(rows["total"]),
            list(rows["sla_percentile_ms"]),
            COLOURS[i % len(COLOURS)],
        )
        for i, (tenant, rows) in enumerate(known.groupby("tenant", sort=False))
    ]
    if latencies:
        yield Chart(
            f"latency-{line}",
            "Latency at the SLA's percentile over load",
            "offered load, all tenants (requests/s)",
            "latency (ms)",
            latencies,
            has_logarithm=True,
        )


def of_costs(break_even: pd.DataFrame) -> Iterator[Chart]:
    """The cost over the demand of each group of models, dedicated and with sharing."""
    for number, (models, rows) in enumerate(break_even.groupby("models", sort=False)):
        options = rows.groupby(["server", "shared"], sort=False)
        series = [
            Series(
                f"{server}, {'sharing allowed' if shared else 'dedicated'}",
                list(part["total_rps"]),
                list(part["usd_per_hour"] * HOURS_PER_MONTH),
                COLOURS[i % len(COLOURS)],
                "steps",
            )
            for i, ((server, shared), part) in enumerate(options)
        ]
        yield Chart(
            f"cost-over-demand-{number + 1}",
            f"Cost over demand: {models}",
            "demand, all models (requests/s)",
            "USD a month",
            series,
        )


def _colour(verdict: str) -> str:
    return VERDICTS.get(verdict, VERDICTS["invalid"])


def _number(value: float) -> float | None:
    """With four digits; JSON has no infinity."""
    return float(f"{value:.4g}") if math.isfinite(value) else None
