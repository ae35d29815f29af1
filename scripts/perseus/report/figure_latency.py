"""Figures of latency: the SLA percentile against the offered rate, and whole distributions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from perseus.peak.stats import Floats
from perseus.peak.verdict import grace_s
from perseus.report.figure_style import (
    DARK,
    GREY,
    Results,
    Style,
    is_known,
    legend,
    nothing,
    panels,
    remainder,
    say,
    short,
)
from perseus.study.sla import Sla

MOST_PANELS, COLUMNS = 12, 2
SHAPES = {"pass": "o", "undecided": "D", "fail": "X", "invalid": "1"}
ECDF_POINTS = 400


def latency_by_rate(results: Results, style: Style) -> Figure:
    """The latency that the SLA binds in every window, against the rate that was offered."""
    shown, figure, axes = _by_line(results, style)
    for panel, (_, row) in zip(axes, shown.iterrows(), strict=True):
        panel.set_title(_title(results, row), loc="left")
        windows = _windows(results, row)
        if windows.empty:
            say(panel, f"{str(row['verdict']).replace('_', ' ')}:\nno windows")
            continue
        _against_rate(panel, results, row, windows)
    figure.supylabel("latency at the percentile of the SLA (ms)", fontsize=style.font_pt)
    for panel in axes[-COLUMNS:]:
        panel.set_xlabel("offered rate, all tenants (requests/s)")
    handles = [
        *(Line2D([], [], color=results.colour(n), linewidth=4, label=n) for n in results.names),
        *(Line2D([], [], marker=shape, color=DARK, linestyle="none", label=verdict,
                 markerfacecolor="white" if verdict == "undecided" else DARK)
          for verdict, shape in SHAPES.items()),
        Line2D([], [], color=DARK, linestyle="--", label="SLA"),
        Line2D([], [], color=GREY, linestyle=":", label="certified rate"),
    ]  # fmt: skip
    legend(figure, handles, 4)
    return figure


def _title(results: Results, row: pd.Series) -> str:
    several = results.peaks["server"].nunique() > 1
    return f"{row['server']}: {short(row)}" if several else short(row)


def latency_ecdf(results: Results, style: Style) -> Figure:
    """Which share of requests was answered within which time, at the certified rate."""
    shown, figure, axes = _by_line(results, style, sharey=True)
    for panel, (_, row) in zip(axes, shown.iterrows(), strict=True):
        panel.set_title(_title(results, row), loc="left")
        if not _distributions(panel, results, row):
            say(panel, f"{str(row['verdict']).replace('_', ' ')}:\nnothing certified")
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


def _by_line(
    results: Results, style: Style, **shared: Any
) -> tuple[pd.DataFrame, Figure, list[Axes]]:
    """One panel per load line, as many as a page holds."""
    shown = results.peaks.head(MOST_PANELS)
    if shown.empty:
        return shown, nothing(style, "no cells"), []
    figure, axes = panels(style, len(shown), COLUMNS, 46, **shared)
    remainder(figure, len(shown), len(results.peaks), "load lines", "windows.parquet of each cell")
    return shown, figure, axes


def _folders(results: Results, row: pd.Series) -> list[Path]:
    """The raw results of the repeats of a load line."""
    mine = results.tenants[
        (results.tenants["scenario"] == row["scenario"])
        & (results.tenants["load_line"] == row["load_line"])
    ]
    wanted = set(mine["cell"])
    return [folder for folder in results.cells if folder.name in wanted]


def _windows(results: Results, row: pd.Series) -> pd.DataFrame:
    frames = [
        pd.read_parquet(folder / "windows.parquet").assign(cell=folder.name)
        for folder in _folders(results, row)
    ]
    # What lies off the load line (warming up, each tenant alone) has no scale.
    return pd.concat(frames).dropna(subset="scale") if frames else pd.DataFrame()


def _against_rate(axes: Axes, results: Results, row: pd.Series, windows: pd.DataFrame) -> None:
    totals = windows.groupby(["cell", "window"])["offered_rps"].transform("sum")
    names = list(dict.fromkeys(windows["tenant"]))
    for i, name in enumerate(names):
        mine = windows["tenant"] == name
        colour = results.colour(name)
        for verdict, shape in SHAPES.items():
            chosen = mine & (windows["verdict"] == verdict)
            fill = "white" if verdict == "undecided" else colour
            axes.plot(
                totals[chosen],
                windows["sla_percentile_ms"][chosen],
                linestyle="none",
                marker=shape,
                color=colour,
                markerfacecolor=fill,
                markeredgecolor="white" if verdict == "fail" else colour,
                markeredgewidth=0.5 if verdict == "fail" else 1,
                markersize=6 if verdict in ("fail", "invalid") else 4.5,
            )
        sla_ms = results.tenants[results.tenants["tenant"] == name]["sla_ms"].iloc[0]
        # dashes take turns where two SLAs are the same
        axes.axhline(sla_ms, color=colour, linestyle=(4 * i, (4, 4 * len(names) - 4 or 3)))
    if is_known(row["certified_rps"]):
        axes.axvline(row["certified_rps"], color=GREY, linestyle=":", zorder=1)
    axes.set_yscale("log")
    plain_ticks(axes.yaxis)


def _distributions(axes: Axes, results: Results, row: pd.Series) -> bool:
    """Draw what there is; whether there was any."""
    drawn = False
    for folder in _folders(results, row):
        record = json.loads((folder / "record.json").read_text())
        if record["certified_window"] < 0:
            continue
        for tenant in record["cell"]["tenants"]:
            name, colour = tenant["name"], results.colour(tenant["name"])
            latency_ms = certified_latency_ms(folder, record, name)
            if not len(latency_ms):
                continue
            share = np.arange(1, len(latency_ms) + 1) / len(latency_ms)
            keep = np.unique(np.linspace(0, len(share) - 1, ECDF_POINTS).astype(int))
            finite = keep[np.isfinite(latency_ms[keep])]
            axes.step(latency_ms[finite], share[finite], where="post", color=colour)
            axes.axvline(tenant["sla_ms"], color=colour, linestyle="--", linewidth=1)
            axes.plot(
                tenant["sla_ms"], tenant["sla_percentile"] / 100, marker="P", color=colour, zorder=5
            )
            drawn = True
    if drawn:
        axes.set_xscale("log")
        plain_ticks(axes.xaxis)
        axes.set_ylim(0, 1.03)
    return drawn


def certified_latency_ms(folder: Path, record: Mapping[str, Any], tenant: str) -> Floats:
    """Sorted latencies of the requests that count in the last certified window of a cell.

    From the intended send; infinite without an answer.
    """
    where = [("window", "=", record["certified_window"]), ("tenant", "=", tenant)]
    window = pd.read_parquet(folder / "windows.parquet", filters=where).iloc[0]
    requests = pd.read_parquet(folder / "requests.parquet", filters=where)
    grace = grace_s(tuple(Sla(t["sla_percentile"], t["sla_ms"]) for t in record["cell"]["tenants"]))
    since_s = (requests["intended_ns"] - window["start_ns"]) / 1e9
    counts = (since_s >= window["settle_s"]) & (since_s < window["elapsed_s"] - grace)
    part = requests[counts]
    latency_ms = ((part["done_ns"] - part["intended_ns"]) / 1e6).where(
        part["status"] == "ok", np.inf
    )
    return np.sort(latency_ms.to_numpy(dtype=float))


def plain_ticks(axis: Any) -> None:
    """Labels such as 50, 100 and 200 on a logarithmic axis, however short it is."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
