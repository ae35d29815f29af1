"""Figure: latency at the percentile of the SLA over the offered rate."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import FillStyleType as FillStyle

from perseus.report.figure_data import FigureData, of_line
from perseus.report.line_panels import (
    by_line,
    columns_of,
    folders,
    of_lines,
    plain_ticks,
    title,
)
from perseus.report.style import DARK, GREY, is_known, legend, wrapped_title
from perseus.results.records import Record
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each mark is the latency of one model in one window. Near the estimated limit, the latency"
    " should cross the line of the SLA. Up to the certified rate, the latency should stay below"
    " this line. The latency is infinite if more requests fail than the SLA allows to be late."
)
ALSO = ("peaks",)

LOOKS: Final[dict[str, tuple[FillStyle, str]]] = {
    "pass": ("full", "passed"),
    "undecided": ("left", "undecided"),
    "fail": ("none", "failed"),
}
"""Fill of a mark and label of the legend, by verdict. Readers can distinguish the fills even in
greyscale."""

COLUMNS_SHOWN = (
    "cell",
    "window",
    "phase",
    "tenant",
    "offered_rps",
    "all_offered_rps",
    "sla_percentile_ms",
    "sla_ms",
    "verdict",
)


def data(results: FigureData) -> pd.DataFrame:
    """Return the windows on each load line, with one row for each tenant that has load."""
    return of_lines(results, lambda row: _windows(results, row))


def draw(windows: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw the latency at the percentile of the SLA in every window, over the offered rate."""
    shown, figure, axes = by_line(results, windows, style)
    if not axes:
        return figure
    for panel, (_, row) in zip(axes, shown.iterrows(), strict=True):
        wrapped_title(panel, title(results, row), style, columns_of(style, len(axes)))
        _against_rate(panel, results, row, of_line(windows, row))
    figure.supylabel("latency at the SLA's percentile (ms)", fontsize=style.font_pt)
    for panel in axes[-columns_of(style, len(axes)) :]:
        panel.set_xlabel("offered rate, all tenants (requests/s)")
    handles = [
        *(Line2D([], [], **results.look(n), linestyle=results.dashes(n), label=n)
          for n in results.names),
        *(Line2D([], [], marker="o", color=DARK, linestyle="none", label=label, fillstyle=fill,
                 markerfacecoloralt="white") for fill, label in LOOKS.values()),
        Line2D([], [], marker="x", color=GREY, linestyle="none", label="invalid"),
        Line2D([], [], color=DARK, label="SLA"),
        Line2D([], [], color=GREY, linestyle=":", label="certified rate"),
    ]  # fmt: skip
    if np.isinf(windows["sla_percentile_ms"]).any():
        handles.append(Line2D([], [], marker="^", color=DARK, linestyle="none", label="infinite"))
    legend(figure, handles, 4)
    return figure


def _windows(results: FigureData, row: pd.Series) -> pd.DataFrame:
    frames = [
        pd.read_parquet(
            folder / "windows.parquet", filters=[("attempt", "=", Record.read(folder).attempt)]
        ).assign(cell=folder.name)
        for folder in folders(results, row)
    ]
    if not frames:
        return pd.DataFrame()
    # Windows that are not on the load line (warm-up, each tenant alone) have no load factor.
    windows = pd.concat(frames).dropna(subset="scale")
    totals = windows.groupby(["cell", "window"])["offered_rps"].transform("sum")
    offered = windows.assign(all_offered_rps=totals)
    return offered[offered["offered_rps"] > 0][[*COLUMNS_SHOWN]]


def _against_rate(axes: Axes, results: FigureData, row: pd.Series, windows: pd.DataFrame) -> None:
    for name, mine in windows.groupby("tenant", sort=False):
        tenant = str(name)
        colour, marker = results.colour(tenant), results.marker(tenant)
        sla_ms = float(mine["sla_ms"].iloc[0])
        axes.axhline(sla_ms, color=colour, linestyle=results.dashes(tenant), linewidth=1)
        axes.plot(0, sla_ms, marker=marker, color=colour, transform=axes.get_yaxis_transform(),
                  clip_on=False, zorder=5)  # fmt: skip
        infinite = mine[np.isinf(mine["sla_percentile_ms"])]
        if len(infinite):
            axes.plot(infinite["all_offered_rps"], np.ones(len(infinite)), marker="^", color=colour,
                      linestyle="none", transform=axes.get_xaxis_transform(),
                      clip_on=False)  # fmt: skip
        for found, of_verdict in mine.groupby("verdict"):
            x, y = of_verdict["all_offered_rps"], of_verdict["sla_percentile_ms"]
            if found not in LOOKS:
                axes.plot(x, y, marker="x", color=GREY, linestyle="none")
                continue
            axes.plot(x, y, marker=marker, color=colour, linestyle="none",
                      fillstyle=LOOKS[str(found)][0], markerfacecoloralt="white")  # fmt: skip
    if is_known(row["certified_rps"]):
        axes.axvline(row["certified_rps"], color=GREY, linestyle=":", zorder=1)
    axes.set_yscale("log")
    plain_ticks(axes.yaxis)
