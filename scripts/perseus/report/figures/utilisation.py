"""Figure of the machine: CPU, GPU, memory, network and queue while each cell was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report.figure_data import FigureData
from perseus.report.style import legend, nothing, panels, remainder
from perseus.results.records import Record
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "The server should be busy and the client idle; a busy client would limit what was measured."
    " Windows are shaded by their phase. Queue: requests that wait in the server or are answered,"
    " all tenants."
)

MOST_CELLS = 8
SERVER, CLIENT = "#0072B2", "#E69F00"
PHASES: Final[dict[str, dict[str, Any]]] = {
    "bracket": {"facecolor": "#b8b8b8"},
    "bisect": {"facecolor": "#d3d3d3"},
    "root": {"facecolor": "#dcebf5"},
    "confirm": {"facecolor": "#c4e3ca", "hatch": "////", "edgecolor": "white"},
}
OTHER: Final[dict[str, Any]] = {
    "facecolor": "#faf5ea"
}  # warming up, looking at the speed, each tenant alone


@dataclass(frozen=True)
class Metric:
    """A metric of the monitor as a line of a panel, divided by `unit`; increases per second."""

    name: str
    unit: float = 1.0
    per_second: bool = False
    of_client: bool = False
    mean: bool = False


QUANTITIES: Final = {
    "CPU (cores)": (Metric("server_cpu_cores"), Metric("client_cpu_cores", of_client=True)),
    "GPU (share)": (Metric("gpu_utilisation", mean=True),),
    "memory (GiB)": (Metric("server_rss_bytes", 2**30),),
    "network (MB/s)": (Metric("network_received_bytes", 1e6, per_second=True),),
    "queue (requests)": (Metric("nv_inference_pending_request_count"),),
}
"""By the title of their panels; those that no cell has samples of are left out."""


def data(results: FigureData) -> pd.DataFrame:
    """The samples that are drawn, with the seconds since their cell began."""
    frames = [frame for folder in results.cells[:MOST_CELLS] for frame in _samples(folder)]
    columns = ["cell", "quantity", "metric", "time_s", "value"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def draw(samples: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """A column for each quantity, a row for each cell."""
    sampled = set(samples["cell"])
    shown = [folder for folder in results.cells if folder.name in sampled]
    if not shown:
        return nothing(style, "no samples of any cell")
    quantities = set(samples["quantity"])
    titles = [title for title in QUANTITIES if title in quantities]
    figure, axes = panels(style, len(titles) * len(shown), len(titles), 26, 22, sharey="col")
    for i, folder in enumerate(shown):
        row = axes[i * len(titles) : (i + 1) * len(titles)]
        of_cell = samples[samples["cell"] == folder.name]
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
        panel.set_ylim(bottom=0)  # the others share their scale
    for panel in axes[-len(titles) :]:
        panel.set_xlabel("time (s)")
    handles = [
        Line2D([], [], color=SERVER, label="server"),
        Line2D([], [], color=CLIENT, linestyle="--", label="client"),
        *(Patch(**look, label=phase) for phase, look in PHASES.items()),
        Patch(**OTHER, label="warm-up, speed, alone"),
    ]
    legend(figure, handles, 7)
    looked_at = results.cells[:MOST_CELLS]
    empty = [folder.name for folder in looked_at if folder not in shown]
    where = "monitor.parquet of each cell"
    remainder(figure, len(looked_at), len(results.cells), "cells", where, empty)
    return figure


def _samples(folder: Path) -> Iterator[pd.DataFrame]:
    """Of each quantity that a cell has samples of; GPUs and tenants taken together."""
    start_ns = Record.read(folder).started.monotonic_ns
    samples = pd.read_parquet(folder / "monitor.parquet")
    for quantity, metrics in QUANTITIES.items():
        for metric in metrics:
            by_time = samples[samples["metric"] == metric.name].groupby("time_ns")["value"]
            values = (by_time.mean() if metric.mean else by_time.sum()) / metric.unit
            time_s = (values.index.to_series() - start_ns) / 1e9
            if metric.per_second:
                values = values / time_s.diff()
            frame = pd.DataFrame({"time_s": time_s, "value": values}).dropna()
            if len(frame):
                named = {"cell": folder.name, "quantity": quantity, "metric": metric.name}
                yield frame.assign(**named)[["cell", "quantity", "metric", "time_s", "value"]]


def _phases(axes: Axes, folder: Path) -> None:
    start_ns = Record.read(folder).started.monotonic_ns
    windows = pd.read_parquet(folder / "windows.parquet").drop_duplicates("window")
    for _, window in windows.iterrows():
        begin_s = (window["start_ns"] - start_ns) / 1e9
        look = PHASES.get(window["phase"], OTHER)
        axes.axvspan(begin_s, begin_s + window["elapsed_s"], **look, linewidth=0)
