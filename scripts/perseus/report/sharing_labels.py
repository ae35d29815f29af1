"""Draw marks beside a figure that has one row for each load line. The marks of a row show which
tenants have load, and how much load."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from perseus.report.figure_data import FigureData
from perseus.report.style import MM, is_known
from perseus.study.tasks.figure import FigureTask

COLUMN_PT, COLUMNS_SHARE = 11.0, 0.35
"""Each tenant has a column of marks. A column is at most COLUMN_PT points wide, and all columns
together take at most the share COLUMNS_SHARE of the width of the figure. The largest mark is as
wide as its column."""
GONE_UP, STAYS = "\N{BLACK CIRCLE}", "\N{WHITE CIRCLE}"


def beside(panel: Axes, results: FigureData, lines: pd.DataFrame, style: FigureTask) -> None:
    """Draw marks to the right of a panel that has one row for each load line of `lines`.

    Each tenant has its own column of marks. A filled mark shows a tenant whose rate rises along the
    load line. The area of the mark is proportional to the rise of the rate, divided by the
    dedicated peak of the tenant. A hollow mark shows a tenant with a constant rate. The function
    draws the marks as texts, since the layout of a figure reserves space for texts.
    """
    tenants = [results.tenants_of(line).drop_duplicates("tenant") for _, line in lines.iterrows()]
    names = list(dict.fromkeys(name for rows in tenants for name in rows["tenant"]))
    columns_pt = COLUMNS_SHARE * 72 * style.width_mm * MM
    column_pt = min(COLUMN_PT, columns_pt / len(names))
    for y, rows in enumerate(tenants):
        in_peaks = (rows["direction_rps"] / rows["dedicated_rps"]).fillna(0.0)
        for name, share, base_rps in zip(rows["tenant"], in_peaks, rows["base_rps"], strict=True):
            look = {"color": results.colour(name), "va": "center"}
            if share > 0:
                size = column_pt * sqrt(share / in_peaks.max())
                _put(panel, GONE_UP, column_pt * (names.index(name) + 1), y, size, **look)
            elif is_known(base_rps) and base_rps > 0:
                _put(panel, STAYS, column_pt * (names.index(name) + 1), y, column_pt, **look)
    for column, name in enumerate(names):
        x_pt = column_pt * (column + 1)
        _put(panel, name, x_pt, -0.6, "small", rotation=90, va="bottom")


def _put(panel: Axes, text: str, x_pt: float, y: float, size: float | str, **look: Any) -> None:
    panel.annotate(
        text,
        (1.0, y),
        xycoords=("axes fraction", "data"),
        xytext=(x_pt, 0),
        textcoords="offset points",
        ha="center",
        fontsize=size,
        annotation_clip=False,
        **look,
    )
