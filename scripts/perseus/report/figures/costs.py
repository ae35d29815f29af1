"""Figure: the cost of a million inferences on each load line."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report.figure_data import FigureData
from perseus.report.plot_marks import (
    BASELINE,
    CERTIFIED,
    by_server,
    furthest,
    interval,
    no_estimate,
)
from perseus.report.shown_tables import machine_text
from perseus.report.style import (
    empty_figure,
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
    "Cost of a million inferences. The tick in a row is the cost of the same inferences on"
    " dedicated servers. If the point of a shared server lies to the left of the tick, the shared"
    " server is cheaper. An arrow means that an interval extends beyond the figure."
)


def draw(costs: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw the cost of a million inferences on each load line, and on dedicated servers."""
    chosen = costs[costs["pricing"] == style.pricing]
    if chosen.empty:
        return empty_figure(style, f"no {style.pricing.replace('_', '-')} price for these servers")
    shown = by_server(chosen)
    frames = list(shown.values())
    names = [row_names(results.names_of(frame), style) for frame in frames]
    heights = [20 + rows_mm(of_rows, style) for of_rows in names]
    figure, axes = panels(style, len(shown), 1, heights, sharex=True)
    usd = ["usd_per_million_inferences", "usd_per_million_certified", "dedicated_usd_per_million"]
    limit = furthest(pd.concat(frames)[usd])
    for panel, server, frame, of_rows in zip(axes, shown, frames, names, strict=True):
        first = frame.iloc[0]
        panel.set_title(
            f"{results.one_server(server, style.pricing)}\n"
            f"{machine_text(first)} in {first['region']}, {style.pricing.replace('_', '-')}",
            loc="left",
        )
        _prices(panel, frame, limit)
        name_rows(panel, of_rows)
    axes[0].set_xlim(0, 1.04 * axes[0].get_xlim()[1])
    axes[-1].set_xlabel("USD per million inferences")
    handles = [
        Line2D([], [], marker="o", color="#0072B2", label="at the estimated limit, 95 % interval"),
        Line2D([], [], **CERTIFIED, label="at the certified rate"),
        Line2D([], [], **BASELINE, label="same mix on dedicated servers"),
    ]
    legend(figure, handles, 3)
    remainder(figure, sum(map(len, frames)), len(chosen), "load lines", "costs.csv")
    return figure


def _prices(axes: Axes, frame: pd.DataFrame, limit: float) -> None:
    for y, (_, row) in enumerate(frame.iterrows()):
        usd = row["usd_per_million_inferences"]
        if is_known(usd):
            ends = (usd, row["ci_low_usd"], row["ci_high_usd"])
            interval(axes, y, ends, limit, fmt="o", color="#0072B2")
        else:
            no_estimate(axes, row, row["usd_per_million_certified"], y, "at most")
        if row["kind"] != "dedicated" and is_known(row["dedicated_usd_per_million"]):
            axes.plot(row["dedicated_usd_per_million"], y, **BASELINE)
        if is_known(row["usd_per_million_certified"]):
            axes.plot(row["usd_per_million_certified"], y, **CERTIFIED)
