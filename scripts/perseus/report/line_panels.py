"""Prepare the data and the panels of the latency figures. A latency figure has one panel for each
load line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from perseus.report.figure_data import FigureData
from perseus.report.style import empty_figure, panels, remainder, verdict
from perseus.study.tasks.figure import FigureTask

MAX_PANELS, MIN_MM = 12, 60.0
"""A figure has at most MAX_PANELS panels. Two panels are side by side if each is at least MIN_MM mm
wide."""

LINE = ("server", "scenario", "load_line")


def of_lines(results: FigureData, read: Callable[[pd.Series], pd.DataFrame]) -> pd.DataFrame:
    """Call `read` for each row of the table peaks, and join the returned data.

    The columns LINE of the result identify the load line. The function stops after MAX_PANELS load
    lines with data, since the figure has no more panels.
    """
    found: list[pd.DataFrame] = []
    for _, row in results.peaks.iterrows():
        frame = read(row)
        if len(frame):
            named = {name: row[name] for name in LINE}
            found.append(frame.assign(**named)[[*LINE, *frame.columns]])
        if len(found) == MAX_PANELS:
            break
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=[*LINE])


def by_line(
    results: FigureData, data: pd.DataFrame, style: FigureTask, **shared: Any
) -> tuple[pd.DataFrame, Figure, list[Axes]]:
    """Make a figure with one panel for each load line that has rows in `data`.

    Return the rows of the table peaks for these load lines, the figure, and its panels. A note
    below the figure names the load lines without data. If no load line has data, the figure is
    empty.
    """
    lines = set(map(tuple, data[[*LINE]].to_numpy()))
    has = [tuple(row) in lines for row in results.peaks[[*LINE]].to_numpy()]
    shown = results.peaks[has]
    if shown.empty:
        return shown, empty_figure(style, "no load line has data to show"), []
    is_full = len(shown) == MAX_PANELS  # load lines after the last panel were not read
    looked_at = len(has) - has[::-1].index(True) if is_full else len(has)
    empty = [
        f"{title(results, row)} ({verdict(row)})"
        for (_, row), known in zip(results.peaks.iloc[:looked_at].iterrows(), has, strict=False)
        if not known
    ]
    columns = columns_of(style, len(shown))
    figure, axes = panels(style, len(shown), columns, 44, **shared)
    remainder(figure, looked_at, len(has), "load lines", "the raw results of their cells", empty)
    return shown, figure, axes


def columns_of(style: FigureTask, count: int) -> int:
    """Return how many of `count` panels are side by side: 1 or 2."""
    return min(2 if style.width_mm >= 2 * MIN_MM else 1, count)


def title(results: FigureData, row: pd.Series) -> str:
    several = results.peaks["server"].nunique() > 1
    return f"{row['server']}: {results.called(row)}" if several else results.called(row)


def folders(results: FigureData, row: pd.Series) -> list[Path]:
    """Return the folders with the raw results of all repeats of a load line."""
    wanted = set(results.tenants_of(row)["cell"])
    return [folder for folder in results.cells if folder.name in wanted]


def plain_ticks(axis: Any) -> None:
    """Set tick labels such as 50, 100 and 200 on a short logarithmic axis."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
