"""Whole distributions of latency at the certified rate."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.peak.durations import grace_s
from perseus.peak.stats import Floats
from perseus.report.figure_data import FigureData
from perseus.report.line_panels import COLUMNS, by_line, folders, plain_ticks, title
from perseus.report.style import DARK, legend, say, verdict
from perseus.results.records import PeakRecord
from perseus.study.tasks.figure import FigureTask

CAPTION = "A curve that passes above its cross keeps the SLA."

POINTS = 400


def draw(results: FigureData, style: FigureTask) -> Figure:
    """Which share of requests was answered within which time, at the certified rate."""
    shown, figure, axes = by_line(results, style, sharey=True)
    for panel, (_, row) in zip(axes, shown.iterrows(), strict=True):
        panel.set_title(title(results, row), loc="left")
        if not _distributions(panel, results, row):
            say(panel, f"{verdict(row)}:\nnothing certified")
            panel.set_xticks([])
    figure.supylabel("share of requests", fontsize=style.font_pt)
    for panel in axes[-COLUMNS:]:
        panel.set_xlabel("latency from the intended send (ms)")
    handles = [
        *(Line2D([], [], color=results.colour(n), label=n) for n in results.names),
        Line2D([], [], color=DARK, linestyle="--", label="SLA latency"),
        Line2D(
            [], [], marker="P", color=DARK, linestyle="none", label="share that the SLA asks for"
        ),
    ]
    legend(figure, handles, 4)
    return figure


def _distributions(axes: Axes, results: FigureData, row: pd.Series) -> bool:
    """Draw what there is; whether there was any."""
    drawn = False
    for folder in folders(results, row):
        record = PeakRecord.read(folder)
        if record.certified_window < 0:
            continue
        for tenant in record.task.tenants:
            colour = results.colour(tenant.name)
            latency_ms = certified_latency_ms(record, tenant.name)
            if not len(latency_ms):
                continue
            share = np.arange(1, len(latency_ms) + 1) / len(latency_ms)
            keep = np.unique(np.linspace(0, len(share) - 1, POINTS).astype(int))
            finite = keep[np.isfinite(latency_ms[keep])]
            axes.step(latency_ms[finite], share[finite], where="post", color=colour)
            axes.axvline(tenant.sla.latency_ms, color=colour, linestyle="--", linewidth=1)
            asked = tenant.sla.percentile / 100
            axes.plot(tenant.sla.latency_ms, asked, marker="P", color=colour, zorder=5)
            drawn = True
    if drawn:
        axes.set_xscale("log")
        plain_ticks(axes.xaxis)
        axes.set_ylim(0, 1.03)
    return drawn


def certified_latency_ms(record: PeakRecord, tenant: str) -> Floats:
    """Sorted latencies of the requests that count in the last certified window of a cell.

    From the intended send; infinite without an answer.
    """
    where = [("window", "=", record.certified_window), ("tenant", "=", tenant)]
    window = pd.read_parquet(record.folder / "windows.parquet", filters=where).iloc[0]
    requests = pd.read_parquet(record.folder / "requests.parquet", filters=where)
    grace = grace_s(record.task.slas)
    since_s = (requests["intended_ns"] - window["start_ns"]) / 1e9
    counts = (since_s >= window["settle_s"]) & (since_s < window["elapsed_s"] - grace)
    part = requests[counts & (requests["status"] != "unsent")]
    latency_ms = ((part["done_ns"] - part["intended_ns"]) / 1e6).where(
        part["status"] == "ok", np.inf
    )
    return np.sort(latency_ms.to_numpy(dtype=float))
