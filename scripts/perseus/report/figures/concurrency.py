"""Figure: latency over throughput in closed loops, and throughput over requests in flight. Both
panels show the knee.

ConScale (Liu et al., IPDPS 2020) estimates the knee from the same plot as in the second panel.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report.figure_data import FigureData
from perseus.report.numbers import bounds, significant
from perseus.report.plot_marks import furthest, upright
from perseus.report.style import (
    DARK,
    GREY,
    empty_figure,
    is_known,
    label_mark,
    legend,
    panels,
    remainder,
    title_over,
)
from perseus.results.scalability import throughput_rps
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Closed loops at several concurrencies. Left: where a curve turns upwards, additional requests"
    " in flight only wait; a star marks the knee. Right: the throughput of all tenants over their"
    " requests in flight, with the fitted scalability law and its two asymptotes, which meet at the"
    " knee. White marks: the client or the host may have limited the throughput, so the fit ignores"
    " these marks. Each line at a mark is a 95 % interval."
)
ALSO = ("knees",)

MAX_SCENARIOS = 4
MAX_KNEES = 3
"""The text in a panel lists at most this many knees."""
KNEE = "#D55E00"


def draw(frame: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw two panels per scenario, with one mark for each measured concurrency."""
    knees = results.tables["knees"]
    if frame.empty:
        return empty_figure(style, "no closed loop was measured")
    scenarios = list(dict.fromkeys(frame["scenario"]))
    shown = scenarios[:MAX_SCENARIOS]
    figure, axes = panels(style, 2 * len(shown), 2, 52)
    for i, scenario in enumerate(shown):
        latency, throughput = axes[2 * i : 2 * i + 2]
        mine, fits = frame[frame["scenario"] == scenario], knees[knees["scenario"] == scenario]
        for tenant in dict.fromkeys(mine["tenant"]):
            _curve(latency, results, mine, str(tenant), fits)
        cells = mine.groupby("cell")
        laws = [_throughput(throughput, rows, _fit(fits, str(cell))) for cell, rows in cells]
        throughput.text(
            *(0.98, 0.05),
            "\n".join(["knee", *filter(None, laws)][: 1 + MAX_KNEES]) if any(laws) else "",
            transform=throughput.transAxes,
            ha="right",
            fontsize="small",
        )
        title = results.where(mine.iloc[0], frame[["server", "scenario"]], style.pricing)
        title_over((latency, throughput), title, style)
        latency.set_xlabel("throughput (requests/s)")
        latency.set_ylabel("p95 latency (ms)")
        throughput.set_xlabel("requests in flight, all tenants")
        throughput.set_ylabel("throughput (requests/s)")
        for panel in (latency, throughput):
            panel.set_xlim(left=0)
            panel.set_ylim(bottom=0)
    handles = [
        *results.handles(frame["tenant"]),
        Line2D([], [], color="none", marker="$n$", markeredgecolor="black", label="in flight"),
        Line2D([], [], color=KNEE, marker="*", linestyle=":", label="knee"),
        Line2D([], [], color=DARK, label="fitted law"),
        Line2D([], [], color=GREY, linestyle="--", label="asymptotes"),
    ]
    legend(figure, handles, 4)
    remainder(figure, len(shown), len(scenarios), "scenarios", "concurrency.csv")
    return figure


def _fit(fits: pd.DataFrame, cell: str) -> pd.Series:
    return fits[fits["cell"] == cell].iloc[0]


def _curve(
    panel: Axes, results: FigureData, levels: pd.DataFrame, tenant: str, fits: pd.DataFrame
) -> None:
    """Draw the curve of one tenant of a scenario, with one mark for each measurement. The line
    joins the means over all cells."""
    rows = levels[levels["tenant"] == tenant]
    limit = furthest(rows[["p95_ms"]])
    mean = rows.groupby("concurrency").mean(numeric_only=True).reset_index()
    panel.plot(mean["answered_rps"], mean["p95_ms"], color=results.colour(tenant), linewidth=0.8)
    for _, row in rows.iterrows():
        x, y = row["answered_rps"], row["p95_ms"]
        panel.errorbar(
            x,
            y,
            xerr=[[x - row["low_rps"]], [row["high_rps"] - x]],
            **results.look(tenant),
            markerfacecolor=results.colour(tenant) if row["valid"] else "white",
            linewidth=0.8,
        )
        ends = (y, row["p95_low_ms"], row["p95_high_ms"])
        upright(panel, x, ends, limit, color=results.colour(tenant), linewidth=0.8)
    for _, row in mean.iterrows():
        at = (row["answered_rps"], row["p95_ms"])
        label_mark(panel, f"{row['concurrency']:.0f}", at)
    _star(panel, mean, fits, levels["tenant"].nunique())


def _star(panel: Axes, levels: pd.DataFrame, fits: pd.DataFrame, tenants: int) -> None:
    """Draw a star at the knee on the curve of a tenant. Between the measured concurrencies, the
    function interpolates the curve."""
    bracketed = fits[fits["bracketed"]]
    if bracketed.empty:
        return
    knee = np.log(bracketed["knee"].mean() / tenants)
    at = np.log(levels["concurrency"])
    place = [np.interp(knee, at, levels[name]) for name in ("answered_rps", "p95_ms")]
    if np.isfinite(place).all():
        panel.plot(*place, color=KNEE, marker="*", markersize=9, linestyle="none", zorder=3)


def _throughput(panel: Axes, rows: pd.DataFrame, fit: pd.Series) -> str | None:
    """Draw the throughput at each concurrency of one cell, and the fitted law. Return a text with
    the knee and the name of the law, or None if the knee is unknown."""
    tenants, levels = rows["tenant"].nunique(), rows.groupby("concurrency")
    in_flight = tenants * np.array(list(levels.groups))
    totals, valid = levels["answered_rps"].sum().to_numpy(), levels["valid"].all().to_numpy()
    for which, face in ((valid, DARK), (~valid, "white")):
        panel.plot(
            in_flight[which],
            totals[which],
            color=DARK,
            marker="o",
            markerfacecolor=face,
            linestyle="none",
        )
    if not is_known(fit["knee"]):
        return None
    knee, single_rps, saturated_rps = (fit[n] for n in ("knee", "single_rps", "saturated_rps"))
    kappa = fit["kappa"] if is_known(fit["kappa"]) else 0.0
    last = max(in_flight[-1], knee)
    shown = np.unique(np.geomspace(1, np.ceil(last), 100).round().astype(int)).tolist()
    curve = throughput_rps(fit["law"], shown, single_rps, knee, kappa)
    panel.plot(shown, curve, color=DARK, linewidth=0.8)
    asymptotes = [0, saturated_rps, saturated_rps]
    panel.plot([0, knee, last], asymptotes, color=GREY, linestyle="--", linewidth=0.8, zorder=1)
    panel.axvline(knee, color=KNEE, linestyle=":", linewidth=1)
    ends = bounds(fit["knee_low"], fit["knee_high"], significant)
    return f"{significant(knee)} ({ends}), {fit['law']}"
