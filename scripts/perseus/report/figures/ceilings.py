"""Figure: client ceilings and dedicated peaks, in requests/s."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter

from perseus.report.figure_data import FigureData, of_line
from perseus.report.style import (
    DARK,
    GREY,
    empty_figure,
    is_known,
    legend,
    panels,
    remainder,
)
from perseus.study.setting import of_ceiling
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "The client ceiling is the highest rate at which the client can send requests on schedule,"
    " measured with a model that does no work. If a peak lies far to the left of the ceiling, the"
    " server limited the peak, not the client. The figure leaves out unreliable ceilings."
)
ALSO = ("peaks",)

MAX_ROWS, ROW_MM = 20, 9.0
SAME_BYTES = 0.01
"""The figure compares a peak with a client ceiling if the sizes of their requests in bytes differ
by at most this share."""


def draw(ceilings: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw the client ceiling for each request shape, and the dedicated peaks."""
    if ceilings.empty:
        return empty_figure(style, "no ceiling of the client was measured")
    shown = ceilings.head(MAX_ROWS)
    alone = set(_dedicated(results)["tenant"])
    names = [name for name in results.names if name in alone]
    handles = [
        *(Line2D([], [], **results.look(name), linestyle="none", label=f"peak of {name}")
          for name in names),
        Line2D([], [], color=DARK, marker="D", linestyle="none", label="client's ceiling"),
        Line2D([], [], color=GREY, marker="x", linestyle="none", label="first invalid rate"),
        Line2D([], [], color=GREY, marker="|", linestyle="none", label="closed loop"),
    ]  # fmt: skip
    figure, (panel,) = panels(style, 1, 1, 16 + ROW_MM * len(shown))
    for y, (_, row) in enumerate(shown.iterrows()):
        _row(panel, results, row, y)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(LogFormatter())
    panel.xaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
    panel.tick_params(axis="x", which="both", length=3)  # the labels of all ticks stand in a line
    panel.set_ylim(len(shown) - 0.5, -0.5)
    panel.set_yticks(range(len(shown)), [_label(row) for _, row in shown.iterrows()])
    panel.set_xlabel("requests/s (logarithmic)")
    legend(figure, handles, 3)
    remainder(figure, len(shown), len(ceilings), "sizes of request", "ceilings.csv")
    return figure


def _label(row: pd.Series) -> str:
    images = "" if row["request_batch_size"] == 1 else f" x {row['request_batch_size']}"
    return f"{row['server']}\n{row['inputs']}{images}"


def _row(panel: Axes, results: FigureData, row: pd.Series, y: int) -> None:
    if is_known(row["ceiling_rps"]) and not row["problem"]:
        panel.plot(row["ceiling_rps"], y, color=DARK, marker="D", linestyle="none", zorder=3)
    for name, marker in (("first_invalid_rps", "x"), ("closed_loop_rps", "|")):
        if is_known(row[name]):
            panel.plot(row[name], y, color=GREY, marker=marker, markersize=8, linestyle="none")
    of = _dedicated(results)
    mine = of[
        (of["server"].map(of_ceiling) == row["server"])
        & of["model"].isin(row["models"].split(" + "))
        & np.isclose(of["request_bytes"], row["request_bytes"], rtol=SAME_BYTES)
    ].drop_duplicates(["scenario", "load_line"])
    for _, tenant in mine.iterrows():
        peak = of_line(results.peaks, tenant).iloc[0]
        if is_known(peak["estimate_rps"]):
            panel.plot(peak["estimate_rps"], y, **results.look(tenant["tenant"]), linestyle="none")


def _dedicated(results: FigureData) -> pd.DataFrame:
    """Return the rows of the tenants on dedicated servers. Tenants whose images the server converts
    are left out, since no client ceiling is valid for their requests."""
    of = results.tenants
    return of[(of["kind"] == "dedicated") & (of["preprocessing"] != "server")]
