"""Figure: latency, memory, open files and failed requests over hours of constant load, with the
fitted drift."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report.figure_data import FigureData
from perseus.report.numbers import bounds, significant
from perseus.report.style import (
    DARK,
    empty_figure,
    is_known,
    legend,
    panels,
    remainder,
    say,
    verdict,
    wrapped_title,
)
from perseus.results.tables.soak import FAILED_REQUESTS, SoakRecord
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "The same load on one server for hours. Each mark is one window: the latency or the failed"
    " requests in the window, or the memory or the open files of the server after the window. Lines"
    " are the fitted drift. The title of a panel states this drift, with the 95 % interval in"
    " brackets. Marks at the upper edge are infinite percentiles of the latency. For example, the"
    " p95 is infinite if more than 5 % of the requests got no response."
)

MAX_CELLS = 4
LEAST_MM = 35.0  # least width of a panel, if all panels of a cell are side by side
WARM_UP = "#f0f0f0"
QUANTITIES = ("latency (ms)", "memory (MB)", "open files", "failed requests (%)")
PANELS = len(QUANTITIES)


def data(results: FigureData) -> pd.DataFrame:
    """Return the measured values of all cells, each with its time in hours since the first window
    of the cell."""
    frames = [
        pd.DataFrame({"hours": each.hours, "value": each.values}).assign(
            cell=folder.name, quantity=each.quantity, tenant=each.tenant, unit=each.unit
        )
        for folder in results.cells
        for each in SoakRecord.read(folder).series()
    ]
    empty = pd.DataFrame(columns=["hours", "value", "cell", "quantity", "tenant", "unit"])
    return pd.concat(frames) if frames else empty


def draw(values: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one row of panels per cell: latency of all tenants, memory, open files, and failed
    requests."""
    frame = results.tables["soak"]
    if frame.empty:
        return empty_figure(style, "no experiment soak has a result")
    cells = [folder for folder in results.cells if folder.name in set(frame["cell"])]
    shown = cells[:MAX_CELLS]
    columns = PANELS if style.width_mm >= LEAST_MM * PANELS else PANELS // 2
    figure, axes = panels(style, PANELS * len(shown), columns, 56)
    for i, folder in enumerate(shown):
        rows = frame[frame["cell"] == folder.name]
        mine = axes[PANELS * i : PANELS * (i + 1)]
        _cell(mine, results, rows, values[values["cell"] == folder.name])
        title = wrapped_title(mine[0], results.where(rows.iloc[0], frame, style.pricing), style, 1)
        title.set_text(f"{title.get_text()}\n\n\n")  # the other titles of the row have more lines
        title.set_in_layout(False)
    handles = [
        *results.handles(frame["tenant"]),
        Line2D([], [], color=DARK, label="p50"),
        Line2D([], [], color=DARK, linestyle="--", label="percentile of the SLA"),
        Patch(color=WARM_UP, label="warm-up"),
    ]
    if np.isinf(values["value"]).any():
        handles.append(Line2D([], [], color=DARK, marker="^", linestyle="none", label="infinite"))
    legend(figure, handles, 5)
    remainder(figure, len(shown), len(cells), "cells", "soak.csv")
    return figure


def _cell(axes: list[Axes], results: FigureData, rows: pd.DataFrame, values: pd.DataFrame) -> None:
    for panel, quantity in zip(axes, QUANTITIES, strict=True):
        panel.set_xlabel("time (h)")
        panel.set_ylabel(quantity)
    series = dict(list(values.groupby(["quantity", values["tenant"].fillna("")])))
    for _, row in rows.fillna({"tenant": ""}).iterrows():
        tenant = row["tenant"]
        mine = series.get((row["quantity"], tenant), values.head(0))
        if row["quantity"] == FAILED_REQUESTS:
            _drift(axes[3], row, mine, "-", results.look(tenant))
        elif tenant:
            dashes = "-" if row["quantity"] == "p50" else "--"
            _drift(axes[0], row, mine, dashes, results.look(tenant))
        else:
            panel = axes[1] if row["quantity"] == "memory" else axes[2]
            _drift(panel, row, mine, "-", {"color": DARK, "marker": "."})
            panel.set_title(_annotation(row), loc="left", fontsize="small")
    axes[0].set_ylim(bottom=0)
    axes[3].set_ylim(0, max(1.0, axes[3].get_ylim()[1]))
    for panel in axes:
        if not panel.lines:
            say(panel, "not known")


def _drift(
    panel: Axes, row: pd.Series, values: pd.DataFrame, dashes: str, look: dict[str, Any]
) -> None:
    """Draw the values and the fitted line of one quantity. Infinite values are at the upper
    edge."""
    if values.empty:
        return
    hours, infinite = values["hours"].to_numpy(), np.isinf(values["value"].to_numpy())
    marks = {**look, "markersize": 2.5, "linestyle": "none", "alpha": 0.4}
    panel.plot(hours[~infinite], values["value"][~infinite], **marks)
    if infinite.any():
        at_edge = {"marker": "^", "transform": panel.get_xaxis_transform(), "clip_on": False}
        panel.plot(hours[infinite], np.ones(infinite.sum()), **marks | at_edge)
    first = hours[0] + row["warm_up_hours"]
    panel.axvspan(hours[0], first, color=WARM_UP, zorder=0, lw=0)
    if is_known(row["per_hour"]):
        ends = [row["level"], row["level"] + row["per_hour"] * row["hours"]]
        panel.plot([first, first + row["hours"]], ends, **look, linestyle=dashes)


def _annotation(row: pd.Series) -> str:
    """Return a title with the fitted drift on several lines, or with the reason why there is no
    fit."""
    if not is_known(row["per_hour"]):
        return f"\n\n\n\n{verdict(row) if row['verdict'] != 'ok' else row['drift']}"
    ends = bounds(row["low_per_hour"], row["high_per_hour"], significant)
    return f"\n\n{row['drift']}\n{significant(row['per_hour'])} per hour\n({ends})"
