"""Figure of `background`: the peak of one tenant beside tenants at fixed rates, as in a figure of
the PERSEUS study (LeMay, Li and Guo, 2020)."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report import published
from perseus.report.figure_data import FigureData
from perseus.report.plot_marks import CERTIFIED, furthest, upright
from perseus.report.style import (
    DARK,
    GREY,
    empty_figure,
    few,
    is_known,
    legend,
    panels,
    remainder,
    title_over,
    verdict,
)
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "The peak of one model beside other models at constant rates. The left panel is in requests/s."
    " In the right panel, each rate is divided by the dedicated peak of its model. Above the dashed"
    " line, one shared server carries more than dedicated servers of the same cost. Hollow points"
    " are published results for the same pair of models (LeMay, Li and Guo, 2020)."
)

MAX_ROWS = 6
MARGIN = -0.04

GPUS = dict(zip(published.POINTS_RPS, ("^", "v", "<", ">"), strict=True))
DEDICATED: dict[str, Any] = {"color": GREY, "marker": "s", "linestyle": "none"}


def draw(frame: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw a row of two panels for each scenario and tenant whose peak was searched."""
    if frame.empty:
        return empty_figure(style, "no search had other tenants at constant rates")
    searches = [rows for _, rows in frame.groupby(["scenario", "searched"], sort=False)]
    shown = searches[:MAX_ROWS]
    figure, axes = panels(style, 2 * len(shown), 2, 62)
    for i, rows in enumerate(shown):
        absolute, normalised = axes[2 * i : 2 * i + 2]
        searched, background = rows.iloc[0][["searched", "background_tenants"]]
        look = results.look(searched)
        where = results.where(rows.iloc[0], frame[["server", "scenario"]], style.pricing)
        title = f"{searched} beside {few(background)}, {where}"
        title_over((absolute, normalised), title, style)
        _absolute(absolute, rows, look)
        _normalised(normalised, rows, look)
        for panel in (absolute, normalised):
            panel.set_xlim(left=MARGIN * panel.get_xlim()[1])  # leave space for the marks at 0
            panel.set_ylim(bottom=0)
    handles = [
        Line2D([], [], color=DARK, marker="o", label="estimate, 95 % interval"),
        Line2D([], [], **CERTIFIED, label="certified"),
        Line2D([], [], **DEDICATED, label="dedicated peak"),
        Line2D([], [], color=GREY, linestyle="--", label="no gain, no loss"),
    ]
    if any(_published(rows) for rows in shown):
        handles += [_of_2020(gpus, label=f"2020: {gpus}") for gpus in GPUS]
    legend(figure, handles, 4)
    remainder(figure, len(shown), len(searches), "searched tenants", "background.csv")
    return figure


def _absolute(panel: Axes, rows: pd.DataFrame, look: dict[str, Any]) -> None:
    """Draw a panel in requests/s. The mark at background load 0 is the dedicated peak."""
    first = rows.iloc[0]
    _points(panel, rows, "background_rps", ("peak_rps", "peak_low_rps", "peak_high_rps"), look)
    panel.plot(rows["background_rps"], rows["certified_rps"], **CERTIFIED)
    if is_known(first["dedicated_rps"]):
        names = ("dedicated_rps", "dedicated_low_rps", "dedicated_high_rps")
        upright(panel, 0.0, tuple(first[name] for name in names), color=GREY)
        panel.plot(0.0, first["dedicated_rps"], **DEDICATED)
    panel.set_xlabel("background load (requests/s)")
    panel.set_ylabel("peak (requests/s)")


def _normalised(panel: Axes, rows: pd.DataFrame, look: dict[str, Any]) -> None:
    """Draw a panel in which each rate is divided by the dedicated peak of its model. The dashed
    line shows the rates that dedicated servers of the same cost carry."""
    panel.plot([0, 1], [1, 0], color=GREY, linestyle="--", zorder=1)
    panel.plot(0.0, 1.0, **DEDICATED)
    for gpus, points in _published(rows):
        for background, searched in points:
            panel.add_line(_of_2020(gpus, background, searched))
    _points(panel, rows, "background_share", ("share", "share_low", "share_high"), look)
    panel.set_xlabel("background load / dedicated peak")
    panel.set_ylabel("peak / dedicated peak")


def _published(rows: pd.DataFrame) -> list[tuple[str, list[published.Point]]]:
    searched, background = rows.iloc[0][["searched", "background_tenants"]]
    return list(published.shares(searched, background))


def _of_2020(gpus: str, *at: float, label: str = "") -> Line2D:
    where = [[each] for each in at] or [[], []]
    look: dict[str, Any] = {"marker": GPUS[gpus], "markersize": 3.5, "markerfacecolor": "none"}
    return Line2D(*where, color=GREY, linestyle="none", linewidth=0.5, label=label, **look)


def _points(
    panel: Axes, rows: pd.DataFrame, x: str, names: tuple[str, str, str], look: dict[str, Any]
) -> None:
    """Draw one point for each load line, or a text for a load line without an estimate."""
    lines = rows.drop_duplicates("load_line").sort_values(x)
    known = lines[names[0]].notna() & lines[x].notna()
    limit = furthest(lines[[names[0]]])
    panel.plot(lines[known][x], lines[known][names[0]], **look, linewidth=0.8)
    for _, row in lines[known].iterrows():
        ends = tuple(row[name] for name in names)
        upright(panel, row[x], ends, limit, color=look["color"])
    for _, row in lines[~known].iterrows():
        at = row[x] if is_known(row[x]) else 0.0
        panel.plot(at, 0.0, marker="x", color=DARK, clip_on=False)
        panel.annotate(
            verdict(row),
            (at, 0.0),
            xytext=(0, 6),
            textcoords="offset points",
            rotation=90,
            ha="center",
            fontsize="small",
            color=DARK,
        )
