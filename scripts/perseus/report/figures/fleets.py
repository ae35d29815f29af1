"""Figure: the monthly cost of the cheapest servers for the demand, with and without sharing."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report.figure_data import COLOURS, HATCHES, FigureData
from perseus.report.style import DARK, empty_figure, is_known, legend, name_rows, panels
from perseus.results.fleets.plans import DEDICATED, ONE_TYPE, SHARING
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Bars: cost of the cheapest servers for the demand, planned with the lower limits of the"
    " capacities. Lines: 95 % interval of the cost that the cheapest servers would have if the"
    " capacities were known exactly."
)

STRATEGIES = (DEDICATED, SHARING, ONE_TYPE)
BAR = 0.8


def draw(fleets: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one group of bars for each level of the demand, with one bar for each strategy."""
    known = fleets[fleets["servers"].notna()]
    if known.empty:
        return empty_figure(style, "Perseus found no fleet for the demand")
    levels = list(dict.fromkeys(fleets["level"]))
    shown = [name for name in STRATEGIES if name in set(fleets["strategy"])]
    figure, (axes,) = panels(style, 1, 1, 16 + 9 * len(levels) * len(shown))
    for _, row in fleets.iterrows():
        place = shown.index(row["strategy"])
        y = levels.index(row["level"]) + BAR * ((place + 0.5) / len(shown) - 0.5)
        _bar(axes, row, y, BAR / len(shown), place)
    name_rows(axes, levels)
    axes.set_xlim(0, 1.35 * np.nanmax(known[["usd_per_month", "usd_if_known_high"]].to_numpy()))
    axes.set_xlabel("USD per month")
    handles: list[Patch | Line2D] = [
        Patch(facecolor=COLOURS[i], hatch=HATCHES[i], edgecolor="white", label=name)
        for i, name in enumerate(shown)
    ]
    if known["usd_if_known_low"].notna().any():
        line = Line2D([], [], color=DARK, marker="|", label="if the capacities were known")
        handles.append(line)
    legend(figure, handles, 4)
    return figure


def _bar(axes: Axes, row: pd.Series, y: float, height: float, place: int) -> None:
    if pd.isna(row["servers"]):
        text = "no fleet (fleets.csv has the reason)"
        axes.annotate(text, (0, y), va="center", fontsize="small", color=DARK)
        return
    usd, low, high = (row[f"usd_{end}"] for end in ("per_month", "if_known_low", "if_known_high"))
    axes.barh(
        y,
        usd,
        height=0.9 * height,
        color=COLOURS[place],
        hatch=HATCHES[place],
        edgecolor="white",
        linewidth=0,
    )
    if is_known(low):
        axes.plot([low, high], [y, y], color=DARK, marker="|", markersize=7)
    end = max(usd, high) if is_known(high) else usd
    label = f"{usd:,.0f} USD, {row['servers']:.0f} server{'' if row['servers'] == 1 else 's'}"
    axes.annotate(
        label,
        (end, y),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        fontsize="small",
        color=DARK,
    )
