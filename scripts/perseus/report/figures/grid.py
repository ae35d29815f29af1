"""Figure: the cost, the latency and the throughput of each setting of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report.figure_data import COLOURS, FigureData
from perseus.report.line_panels import columns_of
from perseus.report.plot_marks import interval
from perseus.report.style import (
    BESIDE_MM,
    DARK,
    GREY,
    SMALL,
    characters,
    empty_figure,
    label_mark,
    legend,
    panels,
    remainder,
    say,
    wrapped_title,
)
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each mark is a setting, with the 95 % interval of its cost. Marks further left are cheaper,"
    " lower marks are faster, and larger marks have more throughput. The line joins the settings on"
    " the Pareto front: no other setting is better in cost, latency and throughput at once. White"
    " marks are excluded from the recommendation. An arrow means that an interval extends beyond"
    " the figure. The text below a panel explains the numbers beside the marks."
)

MAX_PANELS = 8
COST = "usd_per_million_inferences"
MAX_LABELS = 8
MAX_BROKEN = 2  # if panels are side by side, a setting has at most this many lines below its panel
HEIGHT_MM, LINE_MM = 60, 4
"""Height in mm of a panel, and of each line of text below a panel. Such a line describes a
setting."""
MARGIN = 0.25  # space above and below the marks, as a share of the range of their latencies
AREA = 90.0  # area of the mark with the highest throughput, in square points
FRONT = COLOURS[0]


def draw(frame: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one panel for each model and mix."""
    if frame.empty:
        return empty_figure(style, "nothing was measured with several settings")
    questions = [rows for _, rows in frame.groupby(["grid", "load_line", "mix"], sort=False)]
    shown = questions[:MAX_PANELS]
    keys = [key(list(map(str, _numbered(rows)["setting"]))) for rows in shown]
    columns = _columns([line for lines in keys for line in lines], len(shown), style)
    keys = [_wrapped(lines, _width(style, columns)) for lines in keys]
    heights = [
        HEIGHT_MM + LINE_MM * max(map(len, keys[i : i + columns]))
        for i in range(0, len(keys), columns)
    ]
    figure, axes = panels(style, len(shown), columns, heights)
    for panel, rows, lines in zip(axes, shown, keys, strict=True):
        wrapped_title(panel, _title(results, rows), style, columns)
        _settings(panel, rows, lines)
    mark: dict[str, Any] = {"marker": "o", "linestyle": "none"}
    handles = [
        Line2D([], [], color=FRONT, marker="o", label="on the front"),
        Line2D([], [], color=GREY, **mark, label="worse than another"),
        Line2D([], [], color="white", markeredgecolor=GREY, **mark, label="not recommended"),
        Line2D([], [], color="none", markeredgecolor=DARK, markersize=11, **mark, label="cheapest"),
    ]
    legend(figure, handles, 4)
    remainder(figure, len(shown), len(questions), "models and mixes", "grid.csv")
    return figure


def _width(style: FigureTask, columns: int) -> int:
    """Return the number of characters that fit on a line below a panel, if `columns` panels are
    side by side."""
    return characters(style.width_mm / columns - BESIDE_MM, SMALL * style.font_pt)


def _columns(lines: Sequence[str], count: int, style: FigureTask) -> int:
    """Return the number of panels side by side. If panels side by side are so narrow that the
    description of a setting takes more than MAX_BROKEN lines, return 1."""
    columns = columns_of(style, count)
    longest = max(map(len, lines), default=0)
    return columns if longest <= MAX_BROKEN * _width(style, columns) else 1


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    return [part for line in lines for part in wrap(line, width, subsequent_indent="    ")]


def _known(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the settings with a known cost and latency."""
    return rows[rows[COST].notna() & rows["p95_ms"].notna()]


def _numbered(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the settings that get a number in the figure, with the cheapest setting first."""
    known = _known(rows)
    if len(known) > MAX_LABELS:
        known = known[known["on_front"].eq(True)].head(MAX_LABELS)
    return known.sort_values(COST)


def _title(results: FigureData, rows: pd.DataFrame) -> str:
    known = len(_known(rows))
    count = "" if known == len(rows) else f": {known} of {len(rows)} settings"
    return f"{results.mix_title(rows.iloc[0])}{count}"


def _settings(panel: Axes, rows: pd.DataFrame, lines: Sequence[str]) -> None:
    """Draw the marks of the settings. `lines` has the lines of text below the panel. These lines
    explain the number beside each mark."""
    known = _known(rows)
    panel.set_xlabel("USD per million inferences")
    panel.set_ylabel("p95 at the certified rate (ms)")
    if known.empty:
        say(panel, "no setting has a certified rate")
        return
    front = known[known["on_front"].eq(True)]
    largest = known["estimate_rps"].max()
    rightmost = 1.25 * known[COST].max()
    for _, row in known.iterrows():
        _mark(panel, row, AREA * row["estimate_rps"] / largest, rightmost)
    along = front.sort_values(COST)
    panel.plot(along[COST], along["p95_ms"], color=FRONT, linewidth=0.8)
    _number(panel, _numbered(rows), lines)
    panel.set_xlim(0.9 * min(known[name].min() for name in (COST, "ci_low_usd")), rightmost)
    low, high = known["p95_ms"].min(), known["p95_ms"].max()
    beyond = MARGIN * max(high - low, MARGIN * high)
    panel.set_ylim(max(low - beyond, 0), high + beyond)


def _number(panel: Axes, rows: pd.DataFrame, lines: Sequence[str]) -> None:
    """Write a number beside each mark, and the setting of each number below the panel."""
    for number, (_, row) in enumerate(rows.iterrows(), start=1):
        label_mark(panel, str(number), (row[COST], row["p95_ms"]))
    panel.annotate(
        "\n".join(lines),
        (0, 0),
        xycoords="axes fraction",
        textcoords="offset points",
        xytext=(0, -30),
        va="top",
        fontsize="small",
        color=DARK,
    )


def key(settings: Sequence[str]) -> list[str]:
    """Return the lines below a panel: one numbered line for each setting, and one line with the
    values that all settings have in common."""
    if not settings:
        return []
    parts = [setting.split(", ") for setting in settings]
    common = [part for part in parts[0] if len(parts) > 1 and all(part in each for each in parts)]
    lines = [
        f"{number}  {', '.join(part for part in each if part not in common)}"
        for number, each in enumerate(parts, start=1)
    ]
    return [*lines, f"all: {', '.join(common)}"] if common else lines


def _mark(panel: Axes, row: pd.Series, area: float, rightmost: float) -> None:
    x, y = row[COST], row["p95_ms"]
    excluded = pd.isna(row["rank"])
    colour = FRONT if row["on_front"] and not excluded else GREY
    ends = (x, row["ci_low_usd"], row["ci_high_usd"])
    interval(panel, y, ends, 0.98 * rightmost, color=colour, linewidth=0.8)
    face = "white" if excluded else colour
    panel.scatter(x, y, s=area, color=face, edgecolors=colour, linewidths=0.8, zorder=3)
    if row["rank"] == 1:
        panel.scatter(x, y, s=area + 80, facecolors="none", edgecolors=DARK, linewidths=0.8)
