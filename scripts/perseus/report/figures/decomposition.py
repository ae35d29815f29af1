"""Figure: parts of the mean latency at the certified rates."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report.figure_data import COLOURS, HATCHES, FigureData
from perseus.report.plot_marks import by_server
from perseus.report.style import (
    DARK,
    empty_figure,
    legend,
    name_rows,
    panels,
    remainder,
    row_names,
    rows_mm,
)
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Bars: mean latency at the certified rate, by part. Ticks: median latency of the same"
    " request without load. The load causes the difference between a bar and its tick. Each row has"
    " its own certified rate."
)
PARTS = {
    "compute_ms": "in the model",
    "queue_ms": "in the server's queue",
    "client_ms": "in the network and the client",
}
ALONE = "unloaded_p50_ms"
TICK: Final[dict[str, Any]] = {"marker": "|", "color": DARK, "markersize": 9, "linestyle": "none"}


def data(results: FigureData) -> pd.DataFrame:
    """Return the mean milliseconds of each part of the latency, with one row for each tenant on
    each load line with a certified rate."""
    tenants = results.tenants
    known = tenants[tenants[list(PARTS)].notna().all(axis=1)]
    line = ["server", "scenario", "load_line", "preset", "kind", "weights", "mix", "tenant"]
    means = known.groupby(line, sort=False)[[*PARTS, ALONE]].mean()
    return means.reset_index()


def draw(times: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one bar for each tenant on each load line, and one panel for each server."""
    if times.empty:
        return empty_figure(style, "no rate was certified")
    shown = by_server(times)
    frames = list(shown.values())
    names = [row_names(_names(results, frame), style) for frame in frames]
    heights = [12 + rows_mm(of_rows, style) for of_rows in names]
    figure, axes = panels(style, len(shown), 1, heights, sharex=True)
    for panel, server, frame, of_rows in zip(axes, shown, frames, names, strict=True):
        panel.set_title(results.one_server(server, style.pricing), loc="left")
        _bars(panel, frame)
        name_rows(panel, of_rows)
    axes[-1].set_xlabel("mean latency (ms)")
    looks = zip(PARTS.values(), COLOURS, HATCHES, strict=False)
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=name)
        for name, colour, hatch in looks
    ]
    legend(figure, [*handles, Line2D([], [], label="without load", **TICK)], 2)
    remainder(figure, sum(map(len, frames)), len(times), "rows", "decomposition.csv")
    return figure


def _bars(axes: Axes, frame: pd.DataFrame) -> None:
    rows = range(len(frame))
    before = 0.0 * frame[ALONE]
    for part, colour, hatch in zip(PARTS, COLOURS, HATCHES, strict=False):
        # A part of the latency is a difference of means, and may be slightly negative.
        ms = frame[part].clip(lower=0)
        axes.barh(rows, ms, left=before, color=colour, hatch=hatch, edgecolor="white", linewidth=0)
        before = before + ms
    axes.plot(frame[ALONE], rows, **TICK)


def _names(results: FigureData, frame: pd.DataFrame) -> list[str]:
    """Return the labels of the rows: the load line, and the tenant if the load line is shared."""
    rows = zip(results.names_of(frame), frame["kind"], frame["tenant"], strict=True)
    return [line if kind == "dedicated" else f"{line}: {tenant}" for line, kind, tenant in rows]
