"""Closed loops: latency over throughput, as the requests in flight grow."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report.figure_data import FigureData
from perseus.report.style import legend, nothing, panels, remainder
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Closed loops: where a curve turns up, more requests in flight only wait. A white mark is "
    "a level at which the client or the host, not the server, may have limited."
)

MOST_PANELS, COLUMNS = 8, 2


def draw(results: FigureData, style: FigureTask) -> Figure:
    """A panel per scenario; each mark is a level, with the interval of both its figures."""
    frame = results.tables["concurrency"]
    if frame.empty:
        return nothing(style, "no closed loop was measured")
    scenarios = list(dict.fromkeys(frame["scenario"]))
    shown = scenarios[:MOST_PANELS]
    figure, axes = panels(style, len(shown), min(COLUMNS, len(shown)), 55)
    for panel, scenario in zip(axes, shown, strict=True):
        mine = frame[frame["scenario"] == scenario]
        for tenant in dict.fromkeys(mine["tenant"]):
            _curve(panel, results, mine[mine["tenant"] == tenant])
        panel.set_title(scenario, loc="left")
        panel.set_xlim(left=0)
        panel.set_ylim(bottom=0)
        panel.set_xlabel("answers (requests/s)")
        panel.set_ylabel("p95 latency (ms)")
    names = [name for name in results.names if name in set(frame["tenant"])]
    handles = [
        Line2D([], [], color=results.colour(name), marker=results.marker(name), label=name)
        for name in names
    ]
    handles.append(
        Line2D([], [], color="none", marker="$n$", markeredgecolor="black", label="in flight")
    )
    legend(figure, handles, 4)
    remainder(figure, len(shown), len(scenarios), "scenarios", "concurrency.csv")
    return figure


def _curve(panel: Axes, results: FigureData, rows: pd.DataFrame) -> None:
    tenant = str(rows["tenant"].iloc[0])
    mean = rows.groupby("concurrency").mean(numeric_only=True).reset_index()
    panel.plot(mean["answered_rps"], mean["p95_ms"], color=results.colour(tenant), linewidth=0.8)
    for _, row in rows.iterrows():
        x, y = row["answered_rps"], row["p95_ms"]
        panel.errorbar(
            x,
            y,
            xerr=[[x - row["low_rps"]], [row["high_rps"] - x]],
            yerr=[[y - row["p95_low_ms"]], [row["p95_high_ms"] - y]],
            color=results.colour(tenant),
            marker=results.marker(tenant),
            markerfacecolor=results.colour(tenant) if row["valid"] else "white",
            linewidth=0.8,
        )
    for _, row in mean.iterrows():
        panel.annotate(
            f"{row['concurrency']:.0f}",
            (row["answered_rps"], row["p95_ms"]),
            textcoords="offset points",
            xytext=(4, 4),
            fontsize="small",
        )
