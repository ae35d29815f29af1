"""What the figures of latency share: a panel for each load line, from its raw results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from perseus.report.figure_data import FigureData
from perseus.report.style import nothing, panels, remainder, short
from perseus.study.tasks.figure import FigureTask

MOST_PANELS, COLUMNS = 12, 2


def by_line(
    results: FigureData, style: FigureTask, **shared: Any
) -> tuple[pd.DataFrame, Figure, list[Axes]]:
    """One panel per load line, as many as a page holds."""
    shown = results.peaks.head(MOST_PANELS)
    if shown.empty:
        return shown, nothing(style, "no cells"), []
    figure, axes = panels(style, len(shown), COLUMNS, 46, **shared)
    remainder(figure, len(shown), len(results.peaks), "load lines", "windows.parquet of each cell")
    return shown, figure, axes


def title(results: FigureData, row: pd.Series) -> str:
    several = results.peaks["server"].nunique() > 1
    return f"{row['server']}: {short(row)}" if several else short(row)


def folders(results: FigureData, row: pd.Series) -> list[Path]:
    """The raw results of the repeats of a load line."""
    wanted = set(results.tenants_of(row)["cell"])
    return [folder for folder in results.cells if folder.name in wanted]


def plain_ticks(axis: Any) -> None:
    """Labels such as 50, 100 and 200 on a logarithmic axis, however short it is."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
