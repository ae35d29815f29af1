"""The settings of grids: cost against latency, with what each carries."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report.figure_data import COLOURS, FigureData
from perseus.report.marks import interval
from perseus.report.style import DARK, GREY, legend, nothing, panels, remainder, say
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each mark is a setting, the larger the more it carries, with the 95 % interval of its cost;"
    " left and low is better. Those on the front, which is drawn through them, are not worse than"
    " another one in cost, latency and throughput at once. White marks may not be recommended. An"
    " arrow: the interval goes on."
)

MOST_PANELS, COLUMNS = 8, 2
MOST_LABELS = 6
AREA = 90.0  # of the mark that carries most, in square points
FRONT = COLOURS[0]


def draw(results: FigureData, style: FigureTask) -> Figure:
    """A panel for each model and each mix."""
    frame = results.tables["grid"]
    if frame.empty:
        return nothing(style, "nothing was measured with several settings")
    questions = [rows for _, rows in frame.groupby(["grid", "load_line", "mix"], sort=False)]
    shown = questions[:MOST_PANELS]
    figure, axes = panels(style, len(shown), min(COLUMNS, len(shown)), 62)
    for panel, rows in zip(axes, shown, strict=True):
        _settings(panel, rows)
    mark: dict[str, Any] = {"marker": "o", "linestyle": "none"}
    handles = [
        Line2D([], [], color=FRONT, marker="o", label="on the front"),
        Line2D([], [], color=GREY, **mark, label="worse than another"),
        Line2D([], [], color="white", markeredgecolor=GREY, **mark, label="not to be recommended"),
        Line2D([], [], color="none", markeredgecolor=DARK, markersize=11, **mark, label="cheapest"),
    ]
    legend(figure, handles, 4)
    remainder(figure, len(shown), len(questions), "models and mixes", "grid.csv")
    return figure


def _settings(panel: Axes, rows: pd.DataFrame) -> None:
    known = rows[rows["usd_per_million_inferences"].notna() & rows["p95_ms"].notna()]
    count = "" if len(known) == len(rows) else f": {len(known)} of {len(rows)} settings"
    panel.set_title(f"{rows['mix'].iloc[0]}{count}", loc="left")
    panel.set_xlabel("USD per million inferences")
    panel.set_ylabel("p95 at the certified rate (ms)")
    if known.empty:
        say(panel, "no setting has a certified rate")
        return
    front = known[known["on_front"].eq(True)]
    largest = known["estimate_rps"].max()
    rightmost = 1.25 * known["usd_per_million_inferences"].max()
    for _, row in known.iterrows():
        _mark(panel, row, AREA * row["estimate_rps"] / largest, rightmost)
    along = front.sort_values("usd_per_million_inferences")
    panel.plot(along["usd_per_million_inferences"], along["p95_ms"], color=FRONT, linewidth=0.8)
    labelled = known if len(known) <= MOST_LABELS else front.head(MOST_LABELS)
    for i, (_, row) in enumerate(labelled.sort_values("usd_per_million_inferences").iterrows()):
        above = i % 2 == 0  # so that neighbours do not write over each other
        panel.annotate(
            str(row["setting"]).replace(", ", "\n"),
            (row["usd_per_million_inferences"], row["p95_ms"]),
            textcoords="offset points",
            xytext=(0, 9 if above else -9),
            ha="center",
            va="bottom" if above else "top",
            fontsize="x-small",
            color=DARK,
        )
    panel.set_xlim(0, rightmost)
    panel.set_ylim(0, 1.4 * known["p95_ms"].max())


def _mark(panel: Axes, row: pd.Series, area: float, rightmost: float) -> None:
    x, y = row["usd_per_million_inferences"], row["p95_ms"]
    excluded = pd.isna(row["rank"])
    colour = FRONT if row["on_front"] and not excluded else GREY
    ends = (x, row["ci_low_usd"], row["ci_high_usd"])
    interval(panel, y, ends, 0.98 * rightmost, color=colour, linewidth=0.8)
    face = "white" if excluded else colour
    panel.scatter(x, y, s=area, color=face, edgecolors=colour, linewidths=0.8, zorder=3)
    if row["rank"] == 1:
        panel.scatter(x, y, s=area + 80, facecolors="none", edgecolors=DARK, linewidths=0.8)
