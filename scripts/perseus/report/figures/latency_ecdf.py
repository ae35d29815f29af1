"""Figure: distribution of the latencies at the certified rate."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.peak.durations import grace_s
from perseus.peak.stats import Floats
from perseus.report.figure_data import FigureData, of_line
from perseus.report.line_panels import (
    by_line,
    columns_of,
    folders,
    of_lines,
    plain_ticks,
    title,
)
from perseus.report.style import DARK, legend, wrapped_title
from perseus.results.records import PeakRecord
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Distribution of the latencies in the windows that certified a rate, for each repeat. A model"
    " keeps its SLA if its curve passes above the mark of this SLA."
)

POINTS = 120


def data(results: FigureData) -> pd.DataFrame:
    """Return the points of the latency distribution of each tenant in each cell.

    The latency of a request without a response is infinite.
    """
    return of_lines(results, lambda row: _points(results, row))


def draw(points: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw, for each latency, the share of requests with a response within this latency."""
    shown, figure, axes = by_line(results, points, style, sharey=True)
    if not axes:
        return figure
    for panel, (_, row) in zip(axes, shown.iterrows(), strict=True):
        wrapped_title(panel, title(results, row), style, columns_of(style, len(axes)))
        _distributions(panel, results, of_line(points, row))
    figure.supylabel("share of requests", fontsize=style.font_pt)
    for panel in axes[-columns_of(style, len(axes)) :]:
        panel.set_xlabel("latency from the intended send (ms)")
    handles = [
        *(Line2D([], [], **results.look(n), linestyle=results.dashes(n), label=n)
          for n in results.names),
        Line2D([], [], color=DARK, linestyle=":", linewidth=0.8, marker="o",
               label="SLA: latency limit and required share"),
    ]  # fmt: skip
    legend(figure, handles, 3)
    return figure


def _points(results: FigureData, row: pd.Series) -> pd.DataFrame:
    found = []
    for folder in folders(results, row):
        record = PeakRecord.read(folder)
        if record.certified_window < 0:
            continue
        for tenant in record.task.tenants:
            latency_ms = certified_latency_ms(record, tenant.name)
            if not len(latency_ms):
                continue
            share = np.arange(1, len(latency_ms) + 1) / len(latency_ms)
            keep = np.unique(np.linspace(0, len(share) - 1, POINTS).astype(int))
            told = {"latency_ms": latency_ms[keep], "share": share[keep]}
            named = {"cell": folder.name, "tenant": tenant.name}
            sla = {"sla_ms": tenant.sla.latency_ms, "sla_share": tenant.sla.percentile / 100}
            found.append(pd.DataFrame(told).assign(**named, **sla))
    return pd.concat(found) if found else pd.DataFrame()


def _distributions(axes: Axes, results: FigureData, points: pd.DataFrame) -> None:
    for (_, name), curve in points.groupby(["cell", "tenant"], sort=False):
        tenant, answered = str(name), curve[np.isfinite(curve["latency_ms"])]
        colour = results.colour(tenant)
        axes.plot(
            answered["latency_ms"], answered["share"], color=colour,
            linestyle=results.dashes(tenant),
        )  # fmt: skip
        sla_ms, share = curve["sla_ms"].iloc[0], curve["sla_share"].iloc[0]
        axes.axvline(sla_ms, color=colour, linestyle=":", linewidth=0.8)
        axes.plot(sla_ms, share, marker=results.marker(tenant), color=colour, zorder=5)
    axes.set_xscale("log")
    plain_ticks(axes.xaxis)
    axes.set_ylim(0, 1.03)


def certified_latency_ms(record: PeakRecord, tenant: str) -> Floats:
    """Return the sorted latencies in ms of a tenant in the last certification window of a cell.

    The result has only the requests that count for the verdict. A latency begins at the intended
    send time. The latency of a request without a response is infinite.
    """
    where = [("window", "=", record.certified_window), ("tenant", "=", tenant)]
    window = pd.read_parquet(record.folder / "windows.parquet", filters=where).iloc[0]
    columns = ["intended_ns", "done_ns", "status"]
    requests = pd.read_parquet(record.folder / "requests.parquet", columns=columns, filters=where)
    grace = grace_s(record.task.slas)
    since_s = (requests["intended_ns"] - window["start_ns"]) / 1e9
    counts = (since_s >= window["settle_s"]) & (since_s < window["elapsed_s"] - grace)
    part = requests[counts & (requests["status"] != "unsent")]
    latency_ms = ((part["done_ns"] - part["intended_ns"]) / 1e6).where(
        part["status"] == "ok", np.inf
    )
    return np.sort(latency_ms.to_numpy(dtype=float))
