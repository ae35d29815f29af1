"""Figure: the monthly cost of whole servers over the demand, with and without sharing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter

from perseus.report.figure_data import COLOURS, MARKERS, FigureData
from perseus.report.line_panels import columns_of
from perseus.report.style import DARK, GREY, empty_figure, legend, panels, remainder, wrapped_title
from perseus.results.fleets.break_even import RELIABLE
from perseus.results.fleets.plans import HOURS_PER_MONTH
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "The cost of the cheapest set of whole servers for each demand. The plan uses lower limits of"
    " the capacities. A range of the demand is shaded if sharing is cheaper under three conditions:"
    " with the lower limits of the capacities, with their estimates, and in at least"
    f" {RELIABLE:.0%} of the random samples of the capacities. The third condition does not apply"
    " if too many combinations of servers are possible, or if the measurements give no upper limit"
    " for the capacity of a shared server. If the measurements give no upper limit for the capacity"
    " of a dedicated server, no range is shaded."
)
ALSO = ("crossings",)

MAX_PANELS, MAX_SERVERS = 8, 6
MAX_MODELS = 4  # largest number of models in a title
MARK_EVERY = 0.15  # distance between markers on a line, as a share of the diagonal of a panel
FLAT = 0.2
"""The demand axis starts at this share of the lowest demand at which a plotted cost changes."""


def draw(frame: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one panel for each group of models."""
    if frame.empty:
        return empty_figure(
            style,
            "no type of server has dedicated capacities with known lower limits for all models of a"
            " group",
        )
    groups = [rows for _, rows in frame.groupby("models", sort=False)]
    every = list(dict.fromkeys(frame["server"]))
    servers = every[:MAX_SERVERS]
    crossings = results.tables["crossings"]
    shown = groups[:MAX_PANELS]
    columns = columns_of(style, len(shown))
    figure, axes = panels(style, len(shown), columns, 62)
    for panel, rows in zip(axes, shown, strict=True):
        models = str(rows["models"].iloc[0])
        _costs(panel, rows, servers)
        _shade(panel, rows, crossings[crossings["models"] == models])
        wrapped_title(panel, _title(models), style, columns)
    handles = [
        *(Line2D([], [], **_look(servers, name), label=name) for name in servers),
        Line2D([], [], color=DARK, linestyle="--", label="dedicated"),
        Line2D([], [], color=DARK, label="sharing allowed"),
    ]
    legend(figure, handles, 4)
    remainder(figure, len(shown), len(groups), "groups of models", "break_even.csv")
    remainder(figure, len(servers), len(every), "servers", "break_even.csv")
    return figure


def _title(models: str) -> str:
    names = models.split(" + ")
    if len(names) <= MAX_MODELS:
        return models
    return f"{' + '.join(names[:MAX_MODELS])} + {len(names) - MAX_MODELS} more"


def _costs(panel: Axes, rows: pd.DataFrame, servers: list[str]) -> None:
    for (server, shared), line in rows.groupby(["server", "shared"], sort=False):
        if server in servers:
            panel.step(
                line["total_rps"],
                HOURS_PER_MONTH * line["usd_per_hour"],
                where="mid",
                **_look(servers, server),
                linestyle="-" if shared else "--",
            )
    panel.set_xscale("log")
    panel.set_yscale("log")
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_formatter(NullFormatter())
    panel.set_xlim(_first_shown(rows), rows["total_rps"].max())
    panel.set_xlabel("requests/s, all models together")
    panel.set_ylabel("USD per month")


def _look(servers: list[str], server: str) -> dict[str, Any]:
    """Return the colour of the lines of a server and, if there are several servers, their marker.

    The markers of different servers are at different places, so that they stay visible where lines
    overlap.
    """
    place = servers.index(server)
    look: dict[str, Any] = {"color": COLOURS[place]}
    if len(servers) > 1:
        first = MARK_EVERY * place / MAX_SERVERS
        look |= {"marker": MARKERS[place], "markevery": (first, MARK_EVERY)}
    return look


def _first_shown(rows: pd.DataFrame) -> float:
    """Return the demand at which the axis starts, so that a long flat start of all lines is left
    out.

    The axis starts at FLAT times the lowest demand at which a plotted cost changes. If this start
    is below the lowest examined demand, or if no plotted cost changes, the axis starts at the
    lowest examined demand.
    """
    firsts = rows.groupby(["server", "shared"], sort=False)["usd_per_hour"].transform("first")
    changed = rows[rows["usd_per_hour"] != firsts]["total_rps"]
    least = float(rows["total_rps"].min())
    return max(least, FLAT * float(changed.min())) if len(changed) else least


def _shade(panel: Axes, rows: pd.DataFrame, demand_ranges: pd.DataFrame) -> None:
    """Shade the demands at which shared servers reliably save money.

    The costs are known only at some demands. Therefore a shaded range ends half-way between two
    neighbouring demands with known costs.
    """
    demands_rps = np.unique(rows["total_rps"])
    ends_rps = [demands_rps[0], *(demands_rps[1:] + demands_rps[:-1]) / 2, demands_rps[-1]]
    is_reliable = demand_ranges["shared"] & demand_ranges["reliable"]
    saves = demand_ranges[is_reliable & demand_ranges["least_saving"].notna()]
    for first, last in np.searchsorted(demands_rps, saves[["from_rps", "to_rps"]]):
        panel.axvspan(ends_rps[first], ends_rps[last + 1], color=GREY, alpha=0.2, linewidth=0)
