"""Figure: CPU, GPU, memory, network and queue during each cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report.figure_data import FigureData
from perseus.report.samples import COLUMNS, QUANTITIES, samples
from perseus.report.style import empty_figure, legend, panels, remainder
from perseus.results.records import Record
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Utilisation of the machine in each cell. The server should be busy. The client should not be"
    " busy, because a busy client limits the load that it offers. The shade shows the phase of a"
    " window. Queue: requests of all tenants that wait in the server."
)

MAX_CELLS = 8
SERVER, CLIENT = "#0072B2", "#E69F00"
PHASES: Final[dict[str, dict[str, Any]]] = {
    "bracket": {"facecolor": "#b8b8b8"},
    "bisect": {"facecolor": "#d3d3d3", "hatch": "\\\\\\\\", "edgecolor": "white"},
    "near_limit": {"facecolor": "#dcebf5", "hatch": "....", "edgecolor": "#a9c3d6"},
    "certify": {"facecolor": "#c4e3ca", "hatch": "////", "edgecolor": "white"},
}
OTHER: Final[dict[str, Any]] = {
    "facecolor": "#faf5ea"
}  # phases: warm-up, saturation probes, each tenant alone


def data(results: FigureData) -> pd.DataFrame:
    """Return the monitor samples of the first MAX_CELLS cells, with the seconds since the start of
    the cell."""
    frames = [frame for folder in results.cells[:MAX_CELLS] for frame in samples(folder)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)


def draw(drawn: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one column of panels per quantity, and one row per cell."""
    sampled = set(drawn["cell"])
    shown = [folder for folder in results.cells if folder.name in sampled]
    if not shown:
        return empty_figure(style, "no samples of any cell")
    quantities = set(drawn["quantity"])
    titles = [title for title in QUANTITIES if title in quantities]
    figure, axes = panels(style, len(titles) * len(shown), len(titles), 26, 22, sharey="col")
    for i, folder in enumerate(shown):
        row = axes[i * len(titles) : (i + 1) * len(titles)]
        of_cell = drawn[drawn["cell"] == folder.name]
        row[0].set_title(folder.name, loc="left")
        for panel, title in zip(row, titles, strict=True):
            _phases(panel, folder)
            panel.grid(visible=False)
            for metric in QUANTITIES[title]:
                part = of_cell[of_cell["metric"] == metric.name]
                look: dict[str, Any] = (
                    {"color": CLIENT, "linestyle": "--"} if metric.of_client else {"color": SERVER}
                )
                panel.plot(part["time_s"], part["value"], linewidth=1, **look)
    for panel, title in zip(axes, titles, strict=False):
        panel.set_title(f"{title}\n{panel.get_title(loc='left')}", loc="left")
        panel.set_ylim(bottom=0)  # the rows of a column share the scale
    for panel in axes[-len(titles) :]:
        panel.set_xlabel("time (s)")
    handles = [
        Line2D([], [], color=SERVER, label="server"),
        Line2D([], [], color=CLIENT, linestyle="--", label="client"),
        *(Patch(**look, label=phase.replace("_", " ")) for phase, look in PHASES.items()),
        Patch(**OTHER, label="warm-up, probes, alone"),
    ]
    legend(figure, handles, 7)
    looked_at = results.cells[:MAX_CELLS]
    empty = [folder.name for folder in looked_at if folder not in shown]
    where = "monitor.parquet of each cell"
    remainder(figure, len(looked_at), len(results.cells), "cells", where, empty)
    return figure


def _phases(axes: Axes, folder: Path) -> None:
    start_ns = Record.read(folder).started.monotonic_ns
    windows = pd.read_parquet(folder / "windows.parquet").drop_duplicates("window")
    for _, window in windows.iterrows():
        begin_s = (window["start_ns"] - start_ns) / 1e9
        look = PHASES.get(window["phase"], OTHER)
        axes.axvspan(begin_s, begin_s + window["elapsed_s"], **look, linewidth=0)
