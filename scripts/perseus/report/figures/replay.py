"""Figure: offered rate and share of requests within the SLA over time, under bursts and traces."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report.figure_data import FigureData
from perseus.report.numbers import significant
from perseus.report.style import (
    DARK,
    GREY,
    empty_figure,
    is_known,
    legend,
    panels,
    remainder,
    say,
    verdict,
    wrapped_title,
)
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each model gets the same arrivals twice: beside the other models (solid line) and alone"
    " (dashed line). The upper panel shows the rate of the arrivals. The lower panel shows the"
    " share of requests with a response within the latency limit of the SLA, by intended send time."
    " A thick bar marks the worst minute. The numbers on the right are the shares in the worst"
    " minute: the upper number beside the other models, and the lower number alone."
)
ALSO = ("attainment",)

MAX_ROWS = 6
RATE_MM, ATTAINMENT_MM = 26, 38
MAX_SECONDS = 300
"""For windows of at most this many seconds, the figure has one point per second; for longer
windows, one point per minute."""

LINES = {"alone": "--", "shared": "-"}


def draw(frame: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw two panels for each tenant of a cell, with a common time axis."""
    if frame.empty:
        return empty_figure(style, "no bursty or recorded arrivals were sent")
    parts = [part for _, part in frame.groupby(["cell", "tenant"], sort=False)]
    shown = parts[:MAX_ROWS]
    heights = [RATE_MM, ATTAINMENT_MM] * len(shown)
    figure, axes = panels(style, len(heights), 1, heights)
    for rate, attainment, phases in zip(axes[::2], axes[1::2], shown, strict=True):
        where = results.where(phases.iloc[0], frame, style.pricing)
        wrapped_title(rate, f"{_title(phases)}, {where}", style, 1)
        _tenant(rate, attainment, results, phases)
    axes[-1].set_xlabel("time since the start of the window (s)")
    handles = [
        Patch(color=GREY, label="arrivals"),
        Line2D([], [], color=DARK, label="beside the others"),
        Line2D([], [], color=DARK, linestyle="--", label="alone"),
        Line2D([], [], color=DARK, linestyle=":", label="SLA"),
        Line2D([], [], color=DARK, linewidth=4, label="worst minute"),
    ]
    legend(figure, handles, 5)
    remainder(figure, len(shown), len(parts), "tenants of cells", "replay.csv")
    return figure


def _title(phases: pd.DataFrame) -> str:
    told = ", ".join(f"{row['phase']}: {verdict(row)}" for _, row in phases.iterrows())
    return f"{phases.iloc[0]['tenant']} ({told})"


def _tenant(rate: Axes, attainment: Axes, results: FigureData, phases: pd.DataFrame) -> None:
    """Draw the two panels of one tenant. `phases` has one row of the table replay for each phase:
    "shared" and "alone"."""
    first = phases.iloc[0]
    rate.set_ylabel("requests/s")
    rate.tick_params(labelbottom=False)
    attainment.set_ylabel("within SLA")
    attainment.set_ylim(0, 1.05)
    attainment.axhline(first["sla_percentile"] / 100, color=DARK, linestyle=":", linewidth=1)
    for panel in (rate, attainment):
        panel.set_xlim(0, first["duration_s"])
    measured = phases[phases["attained"].notna()]
    if measured.empty:
        say(attainment, f"not measured: {verdict(first)}")
        return
    for _, row in measured.sort_values(
        "phase"
    ).iterrows():  # draw the shared line above the line alone
        bins = _bins(results, row)
        _attainment(attainment, results, row, bins)
    rate.fill_between(
        bins["start_s"], bins["requests"] / bins["length_s"], step="post", color=GREY, linewidth=0
    )
    rate.set_ylim(bottom=0)


def _bins(results: FigureData, row: pd.Series) -> pd.DataFrame:
    """Return the rows of the table attainment that belong to `row`, a row of the table replay.

    The last row appears once more, at the end of the replay. Without this row, the drawn line would
    end too early.
    """
    frame, end_s = results.tables["attainment"], row["duration_s"]
    bin_s = 1 if end_s <= MAX_SECONDS else 60
    same = [frame[name] == row[name] for name in ("cell", "tenant", "phase")]
    bins = frame[same[0] & same[1] & same[2] & (frame["bin_s"] == bin_s)]
    bins = bins.assign(length_s=(end_s - bins["start_s"]).clip(upper=bin_s))
    last = bins.iloc[-1:].assign(start_s=end_s)
    return pd.concat([bins, last])


def _attainment(panel: Axes, results: FigureData, row: pd.Series, bins: pd.DataFrame) -> None:
    shared = row["phase"] == "shared"
    colour = results.colour(row["tenant"]) if shared else DARK
    panel.step(
        bins["start_s"],
        bins["attained"],
        where="post",
        linewidth=1,
        color=colour,
        linestyle=LINES[row["phase"]],
    )
    start_s, worst = row["worst_minute_start_s"], row["worst_minute_attained"]
    if is_known(worst):
        end_s = min(start_s + 60, row["duration_s"])
        look: dict[str, Any] = {"color": colour, "linestyle": LINES[row["phase"]]}
        panel.plot([start_s, end_s], [worst, worst], **look, linewidth=3, alpha=0.5, zorder=1)
        # The text is beside the panel, where no bar, step or line of the SLA crosses it.
        panel.text(
            1.01,
            0.6 if shared else 0.4,
            f"{significant(100 * worst)} %",
            va="center",
            transform=panel.transAxes,
            fontsize="small",
            color=DARK,
        )
