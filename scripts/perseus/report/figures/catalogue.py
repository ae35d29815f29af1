"""Figure: top-1 accuracy of networks over the cost of a million images, with the Pareto front."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from perseus.report.figure_data import COLOURS, FigureData
from perseus.report.style import DARK, GREY, empty_figure, legend, panels, remainder
from perseus.study.runtimes import RUNTIMES
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each mark is a network with one runtime: left is cheaper, up is more accurate. The line is"
    " the Pareto front: no other network is both cheaper and more accurate. Labels name networks"
    " on the front. Torchvision publishes the accuracies, for fp32."
)
ALSO = ("catalogue_predictions",)

MAX_PANELS, MAX_NAMED = 4, 12
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*")
SLAS: Final = {"times_unloaded": "a multiple of its unloaded latency", "latency": "one SLA for all"}
BESIDE: Final = 2.0
"""The cost axis goes from the least cost divided by this factor to the highest cost times this
factor."""

WIDE: Final = 30.0
"""If the highest cost exceeds the least cost by this factor, the axis has ticks at powers of ten
only."""

COST: Final = "usd_per_million_inferences"


def draw(frame: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one panel for each SLA and request batch size."""
    known = frame[frame[COST].notna() & frame["top1"].notna()]
    if known.empty:
        return empty_figure(style, "no network has both a cost and an accuracy")
    groups = list(known.groupby(["request_batch_size", "sla"], sort=False))
    ways = list(dict.fromkeys(zip(known["runtime"], known["precision"], strict=True)))
    shown = groups[:MAX_PANELS]
    figure, axes = panels(style, len(shown), min(2, len(shown)), 75, 12, sharey=True)
    for panel, ((images, sla), rows) in zip(axes, shown, strict=True):
        several = "1 image" if images == 1 else f"{images} images"
        panel.set_title(f"{several} a request, {SLAS[str(sla)]}", loc="left", fontsize="small")
        for i, (runtime, precision) in enumerate(ways):
            mine = rows[(rows["runtime"] == runtime) & (rows["precision"] == precision)]
            panel.plot(mine[COST], mine["top1"], **_look(i))
        _front(panel, rows[rows["on_front"].eq(True)].sort_values(COST))
        _cost_axis(panel, rows[COST])
    axes[0].set_ylabel("top-1 on ImageNet (%)")
    handles = [Line2D([], [], **_look(i), label=_title(*way)) for i, way in enumerate(ways)]
    legend(figure, [*handles, Line2D([], [], color=GREY, label="the front")], 4)
    remainder(figure, len(shown), len(groups), "SLAs and batches", "catalogue.csv")
    return figure


def _cost_axis(panel: Axes, usd: pd.Series) -> None:
    """Set the limits and ticks of the cost axis, with margins so that close costs still have
    ticks."""
    panel.set_xscale("log")
    panel.set_xlim(usd.min() / BESIDE, usd.max() * BESIDE)
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


def _front(panel: Axes, rows: pd.DataFrame) -> None:
    panel.step(rows[COST], rows["top1"], where="post", color=GREY, linewidth=1, zorder=0)
    step = -(-len(rows) // MAX_NAMED) or 1
    for _, row in rows.iloc[::step].iterrows():
        panel.annotate(
            str(row["model"]),
            (row[COST], row["top1"]),
            xytext=(3, -7),
            textcoords="offset points",
            fontsize="xx-small",
            color=DARK,
        )
