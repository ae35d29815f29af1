"""What the figures of latency share: a panel for each load line, from its raw results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from perseus.report.figure_data import FigureData
from perseus.report.style import nothing, panels, remainder, verdict
from perseus.study.tasks.figure import FigureTask

MOST_PANELS, LEAST_MM = 12, 60.0
"""Panels, and the width of one at least where two stand beside each other."""

LINE = ("server", "scenario", "load_line")


def of_lines(results: FigureData, read: Callable[[pd.Series], pd.DataFrame]) -> pd.DataFrame:
    """What is read of each load line, up to as many that have anything as there are panels."""
    found: list[pd.DataFrame] = []
    for _, row in results.peaks.iterrows():
        frame = read(row)
        if len(frame):
            named = {name: row[name] for name in LINE}
            found.append(frame.assign(**named)[[*LINE, *frame.columns]])
        if len(found) == MOST_PANELS:
            break
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=[*LINE])


def by_line(
    results: FigureData, data: pd.DataFrame, style: FigureTask, **shared: Any
) -> tuple[pd.DataFrame, Figure, list[Axes]]:
    """One panel per load line that `data` has something of; their rows of the peaks."""
    lines = set(map(tuple, data[[*LINE]].to_numpy()))
    has = [tuple(row) in lines for row in results.peaks[[*LINE]].to_numpy()]
    shown = results.peaks[has]
    if shown.empty:
        return shown, nothing(style, "nothing to show of any load line"), []
    is_full = len(shown) == MOST_PANELS  # then nothing was read of those behind the last
    looked_at = len(has) - has[::-1].index(True) if is_full else len(has)
    empty = [
        f"{title(results, row)} ({verdict(row)})"
        for (_, row), known in zip(results.peaks.iloc[:looked_at].iterrows(), has, strict=False)
        if not known
    ]
    columns = columns_of(style, len(shown))
    figure, axes = panels(style, len(shown), columns, 44, 16, **shared)
    remainder(figure, looked_at, len(has), "load lines", "the raw results of their cells", empty)
    return shown, figure, axes


def columns_of(style: FigureTask, count: int) -> int:
    """How many of so many panels stand beside each other."""
    return min(2 if style.width_mm >= 2 * LEAST_MM else 1, count)


def title(results: FigureData, row: pd.Series) -> str:
    several = results.peaks["server"].nunique() > 1
    return f"{row['server']}: {results.called(row)}" if several else results.called(row)


def folders(results: FigureData, row: pd.Series) -> list[Path]:
    """The raw results of the repeats of a load line."""
    wanted = set(results.tenants_of(row)["cell"])
    return [folder for folder in results.cells if folder.name in wanted]


def plain_ticks(axis: Any) -> None:
    """Labels such as 50, 100 and 200 on a logarithmic axis, however short it is."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
