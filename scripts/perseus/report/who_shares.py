"""Which tenants a load line has load of: a column of marks for each, beside the lines' rows."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from perseus.report.figure_data import FigureData
from perseus.report.style import is_known

COLUMN_PT = 11.0
"""Width of a tenant's column, and of the mark of who has most of a line."""
GONE_UP, STAYS = "\N{BLACK CIRCLE}", "\N{WHITE CIRCLE}"


def beside(panel: Axes, results: FigureData, lines: pd.DataFrame) -> None:
    """To the right of a panel whose rows are these load lines, in this order.

    The area of a mark is the tenant's share of the load that rises, in units of dedicated peaks; a
    hollow one stays at its rate. Marks are words at fixed distances, so that the layout has room
    for them whatever the panel's width.
    """
    tenants = [results.tenants_of(line).drop_duplicates("tenant") for _, line in lines.iterrows()]
    names = list(dict.fromkeys(name for rows in tenants for name in rows["tenant"]))
    for y, rows in enumerate(tenants):
        in_peaks = (rows["direction_rps"] / rows["dedicated_rps"]).fillna(0.0)
        for name, share, base_rps in zip(rows["tenant"], in_peaks, rows["base_rps"], strict=True):
            look = {"color": results.colour(name), "va": "center"}
            if share > 0:
                size = COLUMN_PT * sqrt(share / in_peaks.max())
                _put(panel, GONE_UP, names.index(name), y, size, **look)
            elif is_known(base_rps) and base_rps > 0:
                _put(panel, STAYS, names.index(name), y, COLUMN_PT, **look)
    for column, name in enumerate(names):
        _put(panel, name, column, -0.6, "small", rotation=90, va="bottom")


def _put(panel: Axes, text: str, column: int, y: float, size: float | str, **look: Any) -> None:
    panel.annotate(
        text,
        (1.0, y),
        xycoords=("axes fraction", "data"),
        xytext=(COLUMN_PT * (column + 1), 0),
        textcoords="offset points",
        ha="center",
        fontsize=size,
        annotation_clip=False,
        **look,
    )
