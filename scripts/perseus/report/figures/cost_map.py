"""Figure: number of servers and saving of sharing for each demand for two models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from perseus.report.figure_data import FigureData
from perseus.report.line_panels import columns_of
from perseus.report.numbers import significant
from perseus.report.style import DARK, empty_figure, panels, remainder, wrapped_title
from perseus.results.fleets.demand_map import needed_apart, needed_together
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each point of the map is a demand for two models. Numbers: how many servers this demand needs"
    " if the models may share servers. Shade: the saving of sharing. The plan uses lower limits of"
    " the capacities, whole servers and on-demand prices. The plan of this figure ignores the keys"
    " demand.headroom and demand.min_servers of the configuration."
)
MAX_PANELS = 6
MAP_MM, HEIGHT, SCALE_MM = 72.0, 0.8, 14.0
"""A map is at most MAP_MM high, and at most HEIGHT times as high as wide. The scale of the shades
is SCALE_MM high."""
STEPS, FULL = 80, 3
"""The map has STEPS demands for each model, from almost 0 to the capacity of FULL dedicated
servers."""

SHADES = colormaps["Blues"]
PAIR = ["server", "first", "second", "usd_per_month"]


@dataclass(frozen=True)
class ModelPair:
    """Two models that were measured alone and together on the same type of server.

    Each entry of `lines` is an operating point with one or both models: the rates that one server
    carries, by model. `alone_rps` has the rate that a dedicated server of each model carries. All
    rates are lower limits in requests/s.
    """

    server: str
    usd_per_month: float
    models: tuple[str, str]
    alone_rps: tuple[float, float]
    lines: list[dict[str, float]]


def data(results: FigureData) -> pd.DataFrame:
    """Return the number of servers at each demand, for each plotted pair of models and type of
    server."""
    drawn = islice(_pairs(results), MAX_PANELS)
    found = [_of_pair(pair) for pair in drawn]
    empty = pd.DataFrame(columns=[*PAIR, "first_rps", "second_rps", "shared", "dedicated"])
    return pd.concat(found) if found else empty


def _pairs(results: FigureData) -> Iterator[ModelPair]:
    kinds = results.peaks[["scenario", "load_line", "kind"]]
    points = results.tables["operating_points"].merge(kinds, on=["scenario", "load_line"])
    for server, rows in points.dropna(subset=["usd_per_month"]).groupby("server", sort=False):
        lines = [
            dict(zip(line["model"], line["lower_rps"], strict=True))
            for _, line in rows.groupby(["scenario", "load_line", "preset"], sort=False)
        ]
        dedicated = rows[rows["kind"] == "dedicated"]
        alone = dedicated.groupby("model")["lower_rps"].max().to_dict()
        pairs: dict[frozenset[str], tuple[str, ...]] = {}
        for line in lines:
            if len(line) == 2:
                pairs.setdefault(frozenset(line), tuple(line))
        for first, second in pairs.values():
            if first in alone and second in alone:
                usd = float(rows["usd_per_month"].iloc[0])
                of_both = [line for line in lines if set(line) <= {first, second}]
                alone_rps = (alone[first], alone[second])
                yield ModelPair(str(server), usd, (first, second), alone_rps, of_both)


def _of_pair(pair: ModelPair) -> pd.DataFrame:
    rates = np.array([[line.get(name, 0.0) for name in pair.models] for line in pair.lines]).T
    steps = (np.arange(STEPS) + 0.5) / STEPS * FULL
    first_rps, second_rps = (rps * steps for rps in pair.alone_rps)
    shared = needed_together(rates, first_rps, second_rps, 2 * FULL)
    dedicated = needed_apart(pair.alone_rps, first_rps, second_rps)
    first, second = pair.models
    return pd.DataFrame(
        {
            "first_rps": np.tile(first_rps, STEPS),
            "second_rps": np.repeat(second_rps, STEPS),
            "shared": shared.ravel(),
            "dedicated": dedicated.ravel(),
        }
    ).assign(server=pair.server, first=first, second=second, usd_per_month=pair.usd_per_month)


def draw(frame: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one panel for each pair of models on each type of server."""
    if frame.empty:
        return empty_figure(
            style, "no two models have known lower limits, both alone and on a shared server"
        )
    shown = [rows for _, rows in frame.groupby(PAIR, sort=False, dropna=False)]
    columns = columns_of(style, len(shown))
    heights = [min(MAP_MM, HEIGHT * style.width_mm / columns)] * -(-len(shown) // columns)
    heights[-1] += SCALE_MM
    figure, axes = panels(style, len(shown), columns, heights)
    for panel, rows in zip(axes, shown, strict=True):
        mesh = _map(panel, rows, style, columns)
    below: dict[str, Any] = {"ax": axes[(len(heights) - 1) * columns :], "location": "bottom"}
    figure.colorbar(mesh, **below, aspect=40, format="{x:.0%}", label="saved by sharing")
    pairs = sum(1 for _ in _pairs(results))
    remainder(figure, len(shown), pairs, "pairs of models", "operating_points.csv")
    return figure


def _map(panel: Axes, rows: pd.DataFrame, style: FigureTask, columns: int) -> QuadMesh:
    """Draw the map of one pair of models. Each number in the map is the number of servers if
    sharing is allowed."""
    x, y = (np.unique(rows[name]) for name in ("first_rps", "second_rps"))
    shared, dedicated = (rows[n].to_numpy().reshape(STEPS, STEPS) for n in ("shared", "dedicated"))
    saved = 1 - shared / dedicated
    mesh = panel.pcolormesh(x, y, saved, cmap=SHADES, vmin=0, vmax=0.75, rasterized=True)
    counts = np.unique(shared)
    if len(counts) > 1:
        panel.contour(x, y, shared, levels=counts[:-1] + 0.5, colors=DARK, linewidths=0.7)
    for count in counts:
        row, column = _middle(shared == count)
        ink = "white" if saved[row, column] > 0.45 else DARK
        panel.text(x[column], y[row], f"{count:.0f}", color=ink, ha="center", va="center")
    first = rows.iloc[0]
    price = significant(first["usd_per_month"])
    title = f"servers of type {first['server']}, ${price}/month each"
    wrapped_title(panel, title, style, columns)
    panel.set_xlabel(f"requests/s of {first['first']}")
    panel.set_ylabel(f"requests/s of {first['second']}")
    panel.grid(visible=False)
    return mesh


def _middle(region: np.ndarray) -> tuple[int, int]:
    """Return the row and the column at which the map shows the number of a region. This place is
    inside the region and as near as possible to the centre of the region."""
    places = np.argwhere(region)
    nearest = np.argmin(np.square(places - places.mean(axis=0)).sum(axis=1))
    row, column = places[nearest].tolist()
    return row, column
