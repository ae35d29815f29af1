"""Figure: the slowdown of each tenant beside each other tenant, as a matrix."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from perseus.report.figure_data import FigureData
from perseus.report.numbers import bounds, significant
from perseus.report.style import DARK, empty_figure, is_known, legend, panels, remainder, verdict
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "A square shows the slowdown of the model of the row while the model of the column also has"
    " load: the mean latency of the model of the row, divided by its mean latency alone at the same"
    " rate, with the 95 % interval. On the diagonal, the model is alone both times (A/A), so the"
    " slowdown shows the noise."
)

MAX_PANELS = 4
SQUARE_MM, SQUARES_MM, LABELS_MM = 24.0, 130.0, 34.0
"""Three lengths in mm: the largest side of a square, the largest width of a row of squares, and the
height that the labels above and below a matrix take together."""

COLOURED: Final = 2.0
"""The colour scale ends at the largest measured slowdown, but never below this value, so that noise
has a light colour."""

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
    sides_mm = [min(SQUARE_MM, SQUARES_MM / math.isqrt(len(rows))) for rows in matrices]
    heights_mm = [
        LABELS_MM + side * math.isqrt(len(rows))
        for side, rows in zip(sides_mm, matrices, strict=True)
    ]
    figure, axes = panels(style, len(shown), 1, heights_mm)
    for panel, name, rows, side in zip(axes, shown, matrices, sides_mm, strict=True):
        _matrix(panel, rows, style.font_pt * math.sqrt(side / SQUARE_MM))
        panel.set_title(name, loc="left")
    text_only: dict[str, Any] = {"facecolor": "none", "edgecolor": "none"}
    handles = [
        Patch(facecolor="white", edgecolor=DARK, label="alone both times (A/A)"),
        Patch(**NO_VALUE, label="no value"),
        Patch(**text_only, label="bold: beyond the noise"),
        Patch(**text_only, label="*: SLA missed there"),
    ]
    legend(figure, handles, 4)
    remainder(figure, len(shown), len(cells), "cells", "slowdown.csv")
    return figure


def _matrix(panel: Axes, rows: pd.DataFrame, font_pt: float) -> None:
    """Draw the matrix of one cell. A square shows the slowdown of the tenant in its row beside the
    tenant in its column."""
    names = list(dict.fromkeys(rows["tenant"]))
    highest = rows["slowdown"].max()  # known slowdowns only
    scale = LogNorm(1.0, np.nanmax([COLOURED, highest]), clip=True)
    for _, row in rows.iterrows():
        at = (names.index(row["beside"]), names.index(row["tenant"]))
        _square(panel, row, at, scale, font_pt)
    panel.set_aspect("equal")
    panel.set_xlim(-0.5, len(names) - 0.5)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_xticks(range(len(names)), names, rotation=30, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(len(names)), names)
    panel.set_xlabel("beside")
    panel.set_ylabel("slowdown of")
    panel.tick_params(length=0)
    panel.grid(visible=False)
    panel.spines[:].set_visible(False)


def _square(
    panel: Axes, row: pd.Series, at: tuple[int, int], scale: Normalize, font_pt: float
) -> None:
    x, y = at
    place, write = (x - 0.5, y - 0.5), partial(panel.text, x, ha="center", va="center")
    if not is_known(row["slowdown"]):
        panel.add_patch(Rectangle(place, 1, 1, **NO_VALUE))
        background = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        why = verdict(row).replace(" ", "\n")
        write(y, why, fontsize=0.75 * font_pt, color=DARK, bbox=background)
        return
    colour = SHADES(float(scale(row["slowdown"])))
    panel.add_patch(Rectangle(place, 1, 1, facecolor=colour, edgecolor="white", linewidth=1))
    if row["tenant"] == row["beside"]:
        inside = (x - 0.46, y - 0.46)
        panel.add_patch(Rectangle(inside, 0.92, 0.92, fill=False, edgecolor=DARK, linewidth=0.8))
    ink = DARK if np.dot(colour[:3], (0.3, 0.6, 0.1)) > 0.5 else "white"
    fails = "*" if row["over_sla"] > row["comparisons"] / 2 else ""
    weight = "bold" if row["beyond_noise"] else "normal"
    value = _decimals(row["slowdown"]) + fails
    write(y - 0.14, value, fontsize=font_pt, color=ink, weight=weight)
    low, high = row["slowdown_low"] or -math.inf, row["slowdown_high"]
    write(y + 0.2, bounds(low, high, _decimals), fontsize=0.66 * font_pt, color=ink)


def _decimals(slowdown: float) -> str:
    """Return a slowdown as text: with two decimals below 10, otherwise with three significant
    digits."""
    return f"{slowdown:.2f}" if slowdown < 10 else significant(slowdown)
