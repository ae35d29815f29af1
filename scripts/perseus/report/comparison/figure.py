"""Draw the figure of a comparison: the peaks of both studies, and the ratios new / base with their
intervals."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from perseus.report.plot_marks import interval
from perseus.report.style import (
    DARK,
    GREY,
    ROW_MM,
    empty_figure,
    is_known,
    legend,
    panels,
    remainder,
    rows_mm,
)
from perseus.results.compare.judge import BETTER, NOT_COMPARABLE, SAME, VERDICTS, WORSE
from perseus.results.compare.pairs import COST, OVERALL, P95, PEAK, RATIO
from perseus.results.scenario_names import in_several_scenarios, with_scenarios
from perseus.study.tasks.figure import FigureTask

MAX_ROWS = 10
"""Each panel has at most this many rows, so that the figure fits the first screen of the page."""
BAND = "#e8e8e8"
LOOKS: dict[str, dict[str, Any]] = {
    WORSE: {"color": "#D55E00", "marker": "v"},
    BETTER: {"color": "#0072B2", "marker": "^"},
    SAME: {"color": DARK, "marker": "o"},
}
"""Style of a mark for each verdict. Shape and colour both identify the verdict."""

WRAPPED = 42
"""A label has at most this many characters on one line."""

APART = 0.17
"""Distance between the middle of a row and a mark, as a share of the height of the row. The mark of
base is above the middle, and the mark of new is below the middle."""

WIDEST = 4.0
"""Largest ratio on the axis. If an end of an interval lies above this value, or below its inverse,
the figure shows an arrow at the edge in place of the end."""


def draw(table: pd.DataFrame, style: FigureTask) -> Figure:
    """Draw the ratios new / base in the upper panel, and the peaks of both studies in the lower
    panel. In each panel, the rows with the worst verdict are on top.

    The figure has no costs, since costs follow from peaks and prices.
    """
    table = with_scenarios(table, in_several_scenarios(table[table["metric"] != OVERALL]))
    order = table["verdict"].map(VERDICTS.index).where(table["lost"] == "", -1)
    table = table.assign(order=order).sort_values("order", kind="stable")
    has_values = table["base"].notna() & (table["new"].notna() | (table["lost"] != ""))
    peaks = table[(table["metric"] == PEAK) & has_values]
    ratios = table[(table["verdict"] != NOT_COMPARABLE) & (table["metric"] != COST)]
    if ratios.empty:
        return empty_figure(style, "nothing in these two results can be compared")
    shown = ratios.head(MAX_ROWS), peaks.head(MAX_ROWS)
    of_ratios = _wrapped([_label(row) for row in shown[0].to_dict("records")])
    of_peaks = _wrapped([_peak_label(row) for row in shown[1].to_dict("records")])
    heights = [24 + _rows_mm(names, style) for names in (of_ratios, of_peaks)]
    figure, (above, below) = panels(style, 2, 1, heights)
    _ratios(above, shown[0])
    _rows(above, of_ratios)
    _peaks(below, shown[1])
    _rows(below, of_peaks)
    handles = [
        Line2D([], [], color=GREY, marker="s", label="base, 95 %"),
        Line2D([], [], color=DARK, marker="o", label="new, 95 %"),
        *([Patch(color=BAND, label="noise floor (aa)")] if ratios["noise_floor"].any() else []),
        *(Line2D([], [], **look, linestyle="none", label=name) for name, look in LOOKS.items()),
    ]
    legend(figure, handles, 3)
    left_out = sum(map(len, (peaks, ratios))), sum(map(len, shown))
    remainder(figure, left_out[1], left_out[0], "rows", "comparison.csv")
    return figure


def _peaks(panel: Axes, rows: pd.DataFrame) -> None:
    for y, row in enumerate(rows.to_dict("records")):
        for name, away, color, marker in (("base", -APART, GREY, "s"), ("new", APART, DARK, "o")):
            ends = (row[name], row[f"{name}_low"], row[f"{name}_high"])
            if is_known(ends[1]):
                interval(panel, y + away, ends, color=color, marker=marker)
            else:
                panel.plot(row[name], y + away, color=color, marker=marker, markerfacecolor="white")
    panel.set_xlim(left=0)
    panel.set_xlabel("peak throughput (requests/s)")


def _ratios(panel: Axes, rows: pd.DataFrame) -> None:
    panel.set_xscale("log")
    for y, row in enumerate(rows.to_dict("records")):
        floor, look = row["noise_floor"], LOOKS[row["verdict"]]
        if is_known(floor):
            panel.barh(y, 1 + floor - 1 / (1 + floor), left=1 / (1 + floor), height=0.8,
                       color=BAND, zorder=0)  # fmt: skip
        ends = np.clip([row["simultaneous_low"], row["simultaneous_high"]], 1 / WIDEST, WIDEST)
        panel.plot(ends, [y, y], color=look["color"], linewidth=1.2)
        for end, edge, marker in zip(ends, (1 / WIDEST, WIDEST), ("<", ">"), strict=True):
            if end == edge:
                panel.plot(end, y, color=look["color"], marker=marker, clip_on=False)
        panel.plot(np.clip(row["ratio"], 1 / WIDEST, WIDEST), y, **look, linestyle="none")
    panel.axvline(1, color=GREY, zorder=1)
    panel.set_xlabel("new / base (95 % intervals for all rows at once)")
    _ticks(panel)


def _ticks(panel: Axes) -> None:
    """Set ticks at round ratios around 1. A short axis has ticks at smaller distances."""
    reach = max(abs(np.log(panel.get_xlim())))
    panel.set_xlim(np.exp(-reach), np.exp(reach))
    above = [1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 4]
    ticks = [tick for tick in above if reach / 4 < np.log(tick) < reach]
    panel.set_xticks([*(1 / tick for tick in reversed(ticks)), 1, *ticks])
    panel.xaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:.2f}"))
    panel.set_xticks([], minor=True)


def _wrapped(labels: list[str]) -> list[str]:
    return ["\n".join(wrap(label, WRAPPED)) for label in labels]


def _rows_mm(labels: list[str], style: FigureTask) -> float:
    return rows_mm(labels, style) + 0.3 * ROW_MM * len(labels)


def _rows(panel: Axes, labels: list[str]) -> None:
    # A name in the results of other people may contain $, which would start a formula.
    panel.set_yticks(range(len(labels)), labels, parse_math=False)
    panel.set_ylim(len(labels) - 0.4, -0.6)
    panel.grid(axis="y", visible=False)


def _label(row: Mapping[Any, Any]) -> str:
    if row["metric"] == OVERALL:
        return f"all compared peaks of {row['server']}"
    names = {PEAK: "peak", RATIO: "sharing ratio", P95: f"p95 of {row['tenant']}"}
    return f"{names[row['metric']]}: {_line(row)}"


def _peak_label(row: Mapping[Any, Any]) -> str:
    return f"{_line(row)}: no new peak" if row["lost"] else _line(row)


def _line(row: Mapping[Any, Any]) -> str:
    return f"{row['mix']} on {row['server']}"
