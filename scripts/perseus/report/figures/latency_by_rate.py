"""The latency that the SLA binds, against the offered rate."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report.figure_data import FigureData
from perseus.report.line_panels import COLUMNS, by_line, folders, plain_ticks, title
from perseus.report.style import DARK, GREY, is_known, legend, say, verdict
from perseus.results.records import Record
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each mark is one window; latency should cross the SLA near the estimate and stay below "
    "it left of the certified rate."
)

SHAPES = {"pass": "o", "undecided": "D", "fail": "X", "invalid": "1"}


def draw(results: FigureData, style: FigureTask) -> Figure:
    """The latency that the SLA binds in every window, against the rate that was offered."""
    shown, figure, axes = by_line(results, style)
    for panel, (_, row) in zip(axes, shown.iterrows(), strict=True):
        panel.set_title(title(results, row), loc="left")
        windows = _windows(results, row)
        if windows.empty:
            say(panel, f"{verdict(row)}:\nno windows")
            continue
        _against_rate(panel, results, row, windows)
    figure.supylabel("latency at the percentile of the SLA (ms)", fontsize=style.font_pt)
    for panel in axes[-COLUMNS:]:
        panel.set_xlabel("offered rate, all tenants (requests/s)")
    handles = [
        *(Line2D([], [], color=results.colour(n), linewidth=4, label=n) for n in results.names),
        *(Line2D([], [], marker=shape, color=DARK, linestyle="none", label=found,
                 markerfacecolor="white" if found == "undecided" else DARK)
          for found, shape in SHAPES.items()),
        Line2D([], [], color=DARK, linestyle="--", label="SLA"),
        Line2D([], [], color=GREY, linestyle=":", label="certified rate"),
    ]  # fmt: skip
    legend(figure, handles, 4)
    return figure


def _windows(results: FigureData, row: pd.Series) -> pd.DataFrame:
    frames = [
        pd.read_parquet(
            folder / "windows.parquet", filters=[("attempt", "=", Record.read(folder).attempt)]
        ).assign(cell=folder.name)
        for folder in folders(results, row)
    ]
    # What lies off the load line (warming up, each tenant alone) has no scale.
    return pd.concat(frames).dropna(subset="scale") if frames else pd.DataFrame()


def _against_rate(axes: Axes, results: FigureData, row: pd.Series, windows: pd.DataFrame) -> None:
    totals = windows.groupby(["cell", "window"])["offered_rps"].transform("sum")
    names = list(dict.fromkeys(windows["tenant"]))
    for i, name in enumerate(names):
        mine = windows["tenant"] == name
        colour = results.colour(name)
        for found, shape in SHAPES.items():
            chosen = mine & (windows["verdict"] == found)
            fill = "white" if found == "undecided" else colour
            axes.plot(
                totals[chosen],
                windows["sla_percentile_ms"][chosen],
                linestyle="none",
                marker=shape,
                color=colour,
                markerfacecolor=fill,
                markeredgecolor="white" if found == "fail" else colour,
                markeredgewidth=0.5 if found == "fail" else 1,
                markersize=6 if found in ("fail", "invalid") else 4.5,
            )
        sla_ms = results.tenants[results.tenants["tenant"] == name]["sla_ms"].iloc[0]
        # dashes take turns where two SLAs are the same
        axes.axhline(sla_ms, color=colour, linestyle=(4 * i, (4, 4 * len(names) - 4 or 3)))
    if is_known(row["certified_rps"]):
        axes.axvline(row["certified_rps"], color=GREY, linestyle=":", zorder=1)
    axes.set_yscale("log")
    plain_ticks(axes.yaxis)
