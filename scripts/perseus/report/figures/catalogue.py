"""Figure: top-1 accuracy of networks over the cost of a million images, with the Pareto front."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from perseus.report.figure_data import COLOURS, FigureData
from perseus.report.line_panels import columns_of
from perseus.report.style import DARK, GREY, empty_figure, legend, panels, remainder
from perseus.results.tables.catalogue import MEASURED, front_order
from perseus.study.runtimes import RUNTIMES
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each mark is a network with one runtime: marks further left are cheaper, and higher marks are"
    " more accurate. A line joins the networks on a Pareto front: no other network is both cheaper"
    " and more accurate than one of these networks. Labels name the networks on the solid front."
    " Networks whose accuracy Perseus measured with labelled images share one front. The accuracies"
    " that torchvision publishes are valid for fp32 only. Networks with published accuracies"
    " therefore have a separate front for each precision, and the figure does not show how much"
    " accuracy they lose in precisions other than fp32."
)
ALSO = ("catalogue_predictions",)

MAX_PANELS, MAX_NAMED = 4, 12
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
SLAS: Final = {"times_unloaded": "a multiple of its unloaded latency", "latency": "one SLA for all"}
NAMES_SHARE, LEAST_FOR_NAMES, BESIDE = 0.35, 6.0, 1.5
"""Limits of the cost axis. The names of networks are in the part of the axis below the least cost.
This part takes the share NAMES_SHARE of the axis, but at least the range from the least cost /
LEAST_FOR_NAMES to the least cost. The axis ends at the highest cost times BESIDE."""

WIDE: Final = 30.0
"""If the highest cost exceeds the least cost by this factor, the axis has ticks at powers of ten
only."""

NAME_HEIGHT: Final = 0.05
"""Least vertical distance between the names of two networks, as a share of the range of
accuracies."""

COST: Final = "usd_per_million_inferences"


def draw(frame: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one panel for each SLA and request batch size."""
    known = frame[frame[COST].notna() & frame["accuracy"].notna()]
    if known.empty:
        return empty_figure(style, "no network has both a cost and an accuracy")
    groups = list(known.groupby(["request_batch_size", "sla"], sort=False))
    ways = list(dict.fromkeys(zip(known["runtime"], known["precision"], strict=True)))
    shown = groups[:MAX_PANELS]
    columns = columns_of(style, len(shown))
    figure, axes = panels(style, len(shown), columns, 75, sharey=True)
    height = NAME_HEIGHT * (known["accuracy"].max() - known["accuracy"].min())
    for panel, ((images, sla), rows) in zip(axes, shown, strict=True):
        several = "1 image" if images == 1 else f"{images} images"
        panel.set_title(f"{several} a request, {SLAS[str(sla)]}", loc="left", fontsize="small")
        for i, (runtime, precision) in enumerate(ways):
            mine = rows[(rows["runtime"] == runtime) & (rows["precision"] == precision)]
            panel.plot(mine[COST], mine["accuracy"], **_look(i))
        front = rows[rows["on_front"].eq(True)].sort_values(COST)
        named = min(front["front"], key=front_order)
        for name, mine in front.groupby("front", sort=False):
            look = "-" if name == named else ":"
            panel.step(
                mine[COST], mine["accuracy"], look, where="post", color=GREY, linewidth=1, zorder=0
            )
        _names(panel, front[front["front"] == named], height)
        _cost_axis(panel, rows[COST])
    is_measured = (known["front"] == MEASURED).any()
    for panel in axes[::columns]:
        panel.set_ylabel("top-1 (%)" if is_measured else "top-1 on ImageNet (%)")
    handles = [Line2D([], [], **_look(i), label=_title(*way)) for i, way in enumerate(ways)]
    legend(figure, [*handles, Line2D([], [], color=GREY, label="front")], 4)
    remainder(figure, len(shown), len(groups), "SLAs and batches", "catalogue.csv")
    return figure


def _cost_axis(panel: Axes, usd: pd.Series) -> None:
    """Set the limits and ticks of the cost axis. The margins are so wide that the axis has a tick
    even if all costs are nearly equal."""
    panel.set_xscale("log")
    span = usd.max() * BESIDE / usd.min()
    for_names = max(LEAST_FOR_NAMES, span ** (NAMES_SHARE / (1 - NAMES_SHARE)))
    panel.set_xlim(usd.min() / for_names, usd.max() * BESIDE)
    is_wide = usd.max() / usd.min() > WIDE
    panel.xaxis.set_major_locator(LogLocator(subs=(1,) if is_wide else (1, 2, 5)))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xlabel("USD per million images")


def _look(number: int) -> dict[str, Any]:
    return {
        "marker": MARKERS[number % len(MARKERS)],
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": "none",
        "markersize": 4,
        "alpha": 0.8,
    }


def _title(runtime: str, precision: str) -> str:
    known = RUNTIMES.get(runtime)
    return f"{known.title if known else runtime}, {precision or 'precision unknown'}"


def _names(panel: Axes, rows: pd.DataFrame, height: float) -> None:
    """Write the names of at most MAX_NAMED networks on a Pareto front. Each name is to the left of
    its mark, where few other marks are.

    `height` is the least vertical distance between two names, in percentage points of accuracy.
    """
    step = -(-len(rows) // MAX_NAMED) or 1
    below = -np.inf
    for _, row in rows.iloc[::step].sort_values("accuracy").iterrows():
        below = max(float(row["accuracy"]), below + height)
        panel.annotate(
            str(row["model"]),
            (row[COST], row["accuracy"]),
            xytext=(-16, below),
            textcoords=("offset points", "data"),
            ha="right",
            va="center",
            fontsize="x-small",
            color=DARK,
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 1},
        )
