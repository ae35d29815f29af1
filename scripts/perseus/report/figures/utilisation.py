"""Figure of the machine: CPU and memory of server and client while each cell was measured."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report.figure_data import FigureData
from perseus.report.style import legend, nothing, panels, remainder, say
from perseus.results.records import Record
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "The server should be busy and the client idle; a busy client would limit what was measured."
)

MOST_CELLS = 8
SERVER, CLIENT = "#0072B2", "#E69F00"
PHASES = {
    "bracket": "#d9d9d9",
    "bisect": "#ececec",
    "root": "#d5e8f2",
    "confirm": "#d6ecd9",
}
OTHER = "#f7f0e2"  # warming up, looking at the speed, each tenant alone
GIB = 2**30


def draw(results: FigureData, style: FigureTask) -> Figure:
    """CPU on the left, memory on the right, one row per cell."""
    shown = results.cells[:MOST_CELLS]
    if not shown:
        return nothing(style, "no cells")
    figure, axes = panels(style, 2 * len(shown), 2, 28, sharey="col")
    for row, folder in enumerate(shown):
        _cell(axes[2 * row], axes[2 * row + 1], folder)
    for panel in axes[:2]:  # the others share their scale
        panel.set_ylim(bottom=0)
    axes[0].set_title("CPU (cores)\n" + axes[0].get_title(loc="left"), loc="left")
    axes[1].set_title("memory of the server (GiB)\n", loc="left")
    for panel in axes[-2:]:
        panel.set_xlabel("time since the cell began (s)")
    handles = [
        Line2D([], [], color=SERVER, label="server"),
        Line2D([], [], color=CLIENT, linestyle="--", label="client"),
        *(Patch(color=colour, label=phase) for phase, colour in PHASES.items()),
        Patch(color=OTHER, label="warm-up, speed, alone"),
    ]
    legend(figure, handles, 7)
    remainder(figure, len(shown), len(results.cells), "cells", "monitor.parquet of each cell")
    return figure


def _cell(cpu: Axes, memory: Axes, folder: Path) -> None:
    start_ns = Record.read(folder).started.monotonic_ns
    samples = pd.read_parquet(folder / "monitor.parquet")
    samples = samples.assign(time_s=(samples["time_ns"] - start_ns) / 1e9)
    cpu.set_title(folder.name, loc="left")
    for panel in (cpu, memory):
        _phases(panel, folder, start_ns)
        panel.grid(visible=False)
    for metric, colour, dashes in (
        ("server_cpu_cores", SERVER, "-"),
        ("client_cpu_cores", CLIENT, "--"),
    ):
        part = samples[samples["metric"] == metric]
        cpu.plot(part["time_s"], part["value"], color=colour, linestyle=dashes, linewidth=1)
    part = samples[samples["metric"] == "server_rss_bytes"]
    memory.plot(part["time_s"], part["value"] / GIB, color=SERVER, linewidth=1)
    if samples.empty:
        say(cpu, "no samples")


def _phases(axes: Axes, folder: Path, start_ns: int) -> None:
    windows = pd.read_parquet(folder / "windows.parquet").drop_duplicates("window")
    for _, window in windows.iterrows():
        begin_s = (window["start_ns"] - start_ns) / 1e9
        axes.axvspan(
            begin_s, begin_s + window["elapsed_s"], color=PHASES.get(window["phase"], OTHER), lw=0
        )
