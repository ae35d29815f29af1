"""Figure: the slowdown of each tenant beside each other tenant, as a matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from perseus.report.figure_data import FigureData
from perseus.report.numbers import bounds, significant
from perseus.report.style import (
    DARK,
    TICKS,
    empty_figure,
    is_known,
    legend,
    panels,
    remainder,
    text_mm,
    verdict,
    wrapped_title,
)
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "A square shows by what factor the model of the column slows down the model of the row: the"
    " mean latency of the model of the row while both models have load, divided by its mean latency"
    " alone at the same rate. If there is room, the square also has the 95 % interval. On the"
    " diagonal, the model is alone in both measurements (A/A), so the factor shows the noise."
)

MAX_PANELS = 4
SQUARE_MM, LEAST_MM, AROUND_MM = 24.0, 3.0, 14.0
"""Lengths in mm: the largest side and the least side of a square, and the space around the squares
of a matrix without the names of the models."""
LEAST_PT: Final = 5.0
"""Least font size of a text in a square."""
FILLED: Final = 0.85  # largest width of a text in a square, as a share of the side of the square
SLOPED_MM: Final = 12.0  # least side of squares whose column has a sloped name

COLOURED: Final = 2.0
"""The colour scale ends at the largest measured slowdown, but not below this value. Otherwise,
small slowdowns that are mere noise would have dark colours."""

SHADES: Final = colormaps[
    "Oranges"
]  # from light to dark, so that the scale is readable without colour
NO_VALUE: Final[dict[str, Any]] = {
    "facecolor": "white",
    "edgecolor": "#bbbbbb",
    "hatch": "////",
    "linewidth": 0,
}


def draw(frame: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one matrix for each cell, with one square for each pair of tenants."""
    if frame.empty:
        return empty_figure(style, "no tenant was measured beside another")
    cells = list(dict.fromkeys(frame["cell"]))
    shown = cells[:MAX_PANELS]
    matrices = [frame[frame["cell"] == name] for name in shown]
    names_mm = [
        max(text_mm(name, TICKS * style.font_pt) for name in rows["tenant"].unique())
        for rows in matrices
    ]
    counts = [math.isqrt(len(rows)) for rows in matrices]
    sides_mm = [
        float(np.clip((style.width_mm - AROUND_MM - names) / count, LEAST_MM, SQUARE_MM))
        for names, count in zip(names_mm, counts, strict=True)
    ]
    heights_mm = [
        AROUND_MM + names * (0.5 if side >= SLOPED_MM else 1) + side * count
        for names, side, count in zip(names_mm, sides_mm, counts, strict=True)
    ]
    figure, axes = panels(style, len(shown), 1, heights_mm)
    for panel, rows, side in zip(axes, matrices, sides_mm, strict=True):
        _matrix(panel, rows, side, style)
        title = results.where(rows.iloc[0], frame, style.pricing)
        wrapped_title(panel, title, style, 1)
    text_only: dict[str, Any] = {"facecolor": "none", "edgecolor": "none"}
    handles = [
        Patch(facecolor="white", edgecolor=DARK, label="alone both times (A/A)"),
        Patch(**NO_VALUE, label="no value"),
        Patch(**text_only, label="bold: beyond the noise"),
        Patch(**text_only, label="*: SLA missed"),
    ]
    legend(figure, handles, 4)
    remainder(figure, len(shown), len(cells), "cells", "slowdown.csv")
    return figure


@dataclass(frozen=True)
class Sizes:
    """Number of decimals of a slowdown, and font sizes of the texts in a square.

    A text of size 0 is left out.
    """

    decimals: int
    value_pt: float
    interval_pt: float
    verdict_pt: float


def _sizes(side_mm: float, font_pt: float) -> Sizes:
    """Return the sizes of the texts in a square with the side `side_mm`. Texts that are too wide
    for the square get the size 0."""

    def fitting(text: str, largest: float) -> float:
        size = min(largest * font_pt, FILLED * side_mm / text_mm(text, 1))
        return size if size >= LEAST_PT else 0.0

    two, one = fitting("1.00*", 1), fitting("1.0*", 1)
    interval_pt = fitting("1.00 to 1.00", 0.75)
    return Sizes(2 if two else 1, two or one, interval_pt, fitting("infeasible", 0.75))


def _matrix(panel: Axes, rows: pd.DataFrame, side_mm: float, style: FigureTask) -> None:
    """Draw the matrix of one cell. A square shows the slowdown of the tenant in its row beside the
    tenant in its column."""
    names = list(dict.fromkeys(rows["tenant"]))
    highest = rows["slowdown"].max()  # known slowdowns only
    scale = LogNorm(1.0, np.nanmax([COLOURED, highest]), clip=True)
    sizes = _sizes(side_mm, style.font_pt)
    for _, row in rows.iterrows():
        at = (names.index(row["beside"]), names.index(row["tenant"]))
        _square(panel, row, at, scale, sizes)
    if not sizes.value_pt:
        colours, ends = ScalarMappable(scale, SHADES), [scale.vmin, scale.vmax]
        bar = panel.figure.colorbar(colours, ax=panel, shrink=0.6, ticks=ends, format="{x:.1f}")
        bar.set_label("slowdown")
        bar.minorticks_off()
    panel.set_aspect("equal")
    panel.set_xlim(-0.5, len(names) - 0.5)
    panel.set_ylim(len(names) - 0.5, -0.5)
    turned: dict[str, Any] = {"rotation": 30 if side_mm >= SLOPED_MM else 90}
    turned |= {"va": "top" if side_mm >= SLOPED_MM else "center"}
    panel.set_xticks(range(len(names)), names, ha="right", rotation_mode="anchor", **turned)
    panel.set_yticks(range(len(names)), names)
    panel.set_xlabel("beside")
    panel.set_ylabel("slowdown of")
    panel.tick_params(length=0)
    panel.grid(visible=False)
    panel.spines[:].set_visible(False)


def _square(
    panel: Axes, row: pd.Series, at: tuple[int, int], scale: Normalize, sizes: Sizes
) -> None:
    x, y = at
    place, write = (x - 0.5, y - 0.5), partial(panel.text, x, ha="center", va="center")
    if not is_known(row["slowdown"]):
        panel.add_patch(Rectangle(place, 1, 1, **NO_VALUE))
        if sizes.verdict_pt:
            background = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            why = verdict(row).replace(" ", "\n")
            write(y, why, fontsize=sizes.verdict_pt, color=DARK, bbox=background)
        return
    colour = SHADES(float(scale(row["slowdown"])))
    panel.add_patch(Rectangle(place, 1, 1, facecolor=colour, edgecolor="white", linewidth=1))
    if row["tenant"] == row["beside"]:
        inside = (x - 0.46, y - 0.46)
        panel.add_patch(Rectangle(inside, 0.92, 0.92, fill=False, edgecolor=DARK, linewidth=0.8))
    ink = DARK if np.dot(colour[:3], (0.3, 0.6, 0.1)) > 0.5 else "white"
    fails = "*" if row["over_sla"] > row["comparisons"] / 2 else ""
    weight = "bold" if row["beyond_noise"] else "normal"
    value = _decimals(row["slowdown"], sizes.decimals) + fails
    if sizes.value_pt:
        above = 0.14 if sizes.interval_pt else 0.0
        write(y - above, value, fontsize=sizes.value_pt, color=ink, weight=weight)
    if sizes.interval_pt:
        low, high = row["slowdown_low"] or -math.inf, row["slowdown_high"]
        write(y + 0.2, bounds(low, high, _decimals), fontsize=sizes.interval_pt, color=ink)


def _decimals(slowdown: float, decimals: int = 2) -> str:
    """Return a slowdown as text. A slowdown below 10 has `decimals` decimals, and a larger slowdown
    has three significant digits."""
    return f"{slowdown:.{decimals}f}" if slowdown < 10 else significant(slowdown)
