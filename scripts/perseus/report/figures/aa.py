"""Figure of `aa`: throughput of the same server after each start, with the noise floor."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report.figure_data import FigureData
from perseus.report.line_panels import columns_of
from perseus.report.numbers import percent
from perseus.report.style import (
    DARK,
    GREY,
    empty_figure,
    is_known,
    legend,
    panels,
    remainder,
    wrapped_title,
)
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Throughput of the same closed loop after each start of the same server: each mark is one"
    " start, with the 95 % interval over its windows. If two measurements differ by less than the"
    " height of the band, the noise of the host can cause this difference."
)

MAX_PANELS = 8
BAND = "#e8e8e8"


def draw(frame: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one panel per cell, with a band around the mean throughput. The height of the band is
    the noise floor."""
    if frame.empty:
        return empty_figure(style, "nothing was measured on restarted servers")
    cells = list(dict.fromkeys(frame["cell"]))
    shown = cells[:MAX_PANELS]
    columns = columns_of(style, len(shown))
    figure, axes = panels(style, len(shown), columns, 50)
    for panel, name in zip(axes, shown, strict=True):
        rows = frame[frame["cell"] == name]
        _servers(panel, rows)
        title = results.where(rows.iloc[0], frame, style.pricing)
        wrapped_title(panel, title, style, columns)
    handles = [
        Line2D([], [], color=DARK, marker="o", linestyle="none", label="a server"),
        Line2D([], [], color=GREY, label="mean"),
        Patch(color=BAND, label="noise floor"),
    ]
    legend(figure, handles, 3)
    remainder(figure, len(shown), len(cells), "cells", "aa.csv")
    return figure


def _servers(panel: Axes, rows: pd.DataFrame) -> None:
    rates = rows["answered_rps"]
    ends = np.array([rates - rows["low_rps"], rows["high_rps"] - rates])
    panel.errorbar(rows["restart"], rates, yerr=ends, color=DARK, marker="o", linestyle="none")
    panel.set_xticks(rows["restart"])
    panel.set_xlabel("servers, in the order of their starts")
    panel.set_ylabel("throughput (requests/s)")
    mean, floor = rows["capacity_rps"].iloc[0], rows["noise_floor"].iloc[0]
    if not is_known(floor):
        panel.set_xlabel(f"not all servers could be measured: {rows['verdict'].iloc[0]}")
        return
    panel.axhline(mean, color=GREY, zorder=1)
    panel.axhspan(mean * (1 - floor / 2), mean * (1 + floor / 2), color=BAND, zorder=0)
    panel.annotate(
        percent(floor),
        (0.99, mean * (1 + floor / 2)),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="top",
    )
