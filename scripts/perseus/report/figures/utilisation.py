"""Figure: CPU, GPU, memory, network and queue over the time of each cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report.figure_data import FigureData
from perseus.report.line_panels import title
from perseus.report.samples import COLUMNS, QUANTITIES, samples
from perseus.report.style import empty_figure, legend, panels, remainder, title_over
from perseus.results.records import Record
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Utilisation of the machine in each run. The server should be busy. The client should not be"
    " busy, because a busy client limits the load that it offers. The shade shows the phase of the"
    " search. Queue: requests of all models that wait in the server."
)

MAX_CELLS = 8
LEAST_MM = 25.0  # least width of a panel, if all panels of a cell are side by side
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
    """Return the monitor samples of the first MAX_CELLS cells. The column time_s has the seconds
    since the start of the cell."""
    frames = [frame for folder in results.cells[:MAX_CELLS] for frame in samples(folder)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)


def draw(drawn: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one panel per quantity for each cell. In a narrow figure, each cell has two rows of
    panels."""
    sampled = set(drawn["cell"])
    shown = [folder for folder in results.cells if folder.name in sampled]
    if not shown:
        return empty_figure(style, "the monitor recorded no samples")
    highest = drawn.groupby("quantity")["value"].max()
    quantities = [quantity for quantity in QUANTITIES if quantity in highest]
    count = len(quantities)
    columns = count if style.width_mm >= LEAST_MM * count else -(-count // 2)
    places = columns * -(-count // columns)
    figure, axes = panels(style, places * len(shown), columns, 30)
    for i, folder in enumerate(shown):
        row = axes[i * places : (i + 1) * places]
        of_cell = drawn[drawn["cell"] == folder.name]
        title_over(row[:columns], _title(results, folder), style)
        for unused in row[count:]:
            unused.remove()
        for panel, quantity in zip(row, quantities, strict=False):
            _phases(panel, folder)
            panel.grid(visible=False)
            for metric in QUANTITIES[quantity]:
                part = of_cell[of_cell["metric"] == metric.name]
                look: dict[str, Any] = (
                    {"color": CLIENT, "linestyle": "--"} if metric.of_client else {"color": SERVER}
                )
                panel.plot(part["time_s"], part["value"], linewidth=1, **look)
            panel.set_ylabel(quantity.replace(" (", "\n("))
            panel.set_ylim(0, 1.05 * highest[quantity] or 1.0)  # all cells share the scale
    for panel in figure.axes[-columns:]:
        panel.set_xlabel("time (s)")
    handles = [
        Line2D([], [], color=SERVER, label="server"),
        Line2D([], [], color=CLIENT, linestyle="--", label="client"),
        *(Patch(**look, label=phase.replace("_", " ")) for phase, look in PHASES.items()),
        Patch(**OTHER, label="warm-up, probes, alone"),
    ]
    legend(figure, handles, 7)
    looked_at = results.cells[:MAX_CELLS]
    empty = [_title(results, folder) for folder in looked_at if folder not in shown]
    where = "monitor.parquet of each cell"
    remainder(figure, len(looked_at), len(results.cells), "cells", where, empty)
    return figure


def _title(results: FigureData, folder: Path) -> str:
    """Return the load line of a cell and, if the study has several repeats, the repeat."""
    tenants = results.tenants
    mine = tenants[tenants["cell"] == folder.name].iloc[0]
    repeat = f", repeat {mine['repeat']}" if tenants["repeat"].nunique() > 1 else ""
    return f"{title(results, mine)}{repeat}"


def _phases(axes: Axes, folder: Path) -> None:
    start_ns = Record.read(folder).started.monotonic_ns
    windows = pd.read_parquet(folder / "windows.parquet").drop_duplicates("window")
    for _, window in windows.iterrows():
        begin_s = (window["start_ns"] - start_ns) / 1e9
        look = PHASES.get(window["phase"], OTHER)
        axes.axvspan(begin_s, begin_s + window["elapsed_s"], **look, linewidth=0)
