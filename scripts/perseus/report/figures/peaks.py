"""Figure: the peak of each load line."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report.figure_data import FigureData
from perseus.report.plot_marks import (
    BASELINE,
    CERTIFIED,
    by_server,
    furthest,
    interval,
    no_estimate,
)
from perseus.report.style import (
    DARK,
    is_known,
    legend,
    name_rows,
    panels,
    remainder,
    row_names,
    rows_mm,
)
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each bar shows the highest load that one server carries within the SLAs. The tick in a row is"
    " the load that dedicated servers of the same cost carry. If the bar of a shared server ends to"
    " the right of the tick, the shared server carries more. An arrow means that an interval"
    " extends beyond the figure."
)
ALSO = ("tenants", "costs")


def draw(peaks: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw the peak of each load line, stacked by tenant, with its interval."""
    shown = by_server(peaks)
    frames = list(shown.values())
    names = [row_names(results.names_of(frame), style) for frame in frames]
    heights = [16 + rows_mm(of_rows, style) for of_rows in names]
    figure, axes = panels(style, len(shown), 1, heights, sharex=True)
    limit = furthest(pd.concat(frames)[["estimate_rps", "certified_rps"]])
    for panel, server, frame, of_rows in zip(axes, shown, frames, names, strict=True):
        _bars(panel, results, frame, limit)
        name_rows(panel, of_rows)
        panel.set_title(results.one_server(server, style.pricing), loc="left")
    axes[0].set_xlim(
        0, 1.04 * axes[0].get_xlim()[1]
    )  # share the axis only now, since sharing ends the automatic scaling
    axes[-1].set_xlabel("peak throughput, all tenants together (requests/s)")
    handles = [
        *(Patch(facecolor=results.colour(n), hatch=results.hatch(n), edgecolor="white", label=n)
          for n in results.names),
        Line2D([], [], color=DARK, label="95 % interval"),
        Line2D([], [], **CERTIFIED, label="certified"),
        Line2D([], [], **BASELINE, label="same mix on dedicated servers"),
    ]  # fmt: skip
    legend(figure, handles, 3)
    rows = sum(map(len, frames))
    remainder(figure, rows, len(peaks), "load lines", "peaks.csv")
    return figure


def _bars(axes: Axes, results: FigureData, frame: pd.DataFrame, limit: float) -> None:
    for y, (_, row) in enumerate(frame.iterrows()):
        mine = results.tenants_of(row)
        left = 0.0
        for tenant, rate in mine.groupby("tenant", sort=False)["estimate_rps"].mean().items():
            if is_known(rate):
                axes.barh(
                    y,
                    rate,
                    left=left,
                    height=0.62,
                    color=results.colour(str(tenant)),
                    hatch=results.hatch(str(tenant)),
                    edgecolor="white",
                    linewidth=0.6,
                )
                left += rate
        total = row["estimate_rps"]
        if is_known(row["ci_low_rps"]):
            ends = (total, row["ci_low_rps"], row["ci_high_rps"])
            interval(axes, y, ends, limit, color=DARK, linewidth=1)
        if row["kind"] != "dedicated" and is_known(row["sharing_ratio"]):
            axes.plot(total / row["sharing_ratio"], y, **BASELINE)
        if is_known(row["certified_rps"]):
            axes.plot(row["certified_rps"], y, **CERTIFIED)
        if not is_known(total):
            no_estimate(axes, row, row["certified_rps"], y, "at least")
