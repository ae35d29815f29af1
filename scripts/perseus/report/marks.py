"""Marks and words that the figures of peaks and of costs share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from perseus.report.style import DARK, is_known, verdict

MOST_ROWS, MOST_PANELS = 30, 6
ROW_MM = 6.0

CERTIFIED: dict[str, Any] = {
    "marker": "D",
    "color": "white",
    "markeredgecolor": DARK,
    "linestyle": "none",
}
BASELINE: dict[str, Any] = {"marker": "|", "color": DARK, "markersize": 11, "linestyle": "none"}


def interval(axes: Axes, y: float, ends: tuple[float, float, float], **look: Any) -> None:
    """A value with its interval, `ends` being (value, low, high); an arrow for an infinite end."""
    value, low, high = ends
    reach = 0.3 * value if np.isinf(high) else max(high - value, 0)
    axes.errorbar(value, y, xerr=[[max(value - low, 0)], [reach]], capsize=2.5, **look)
    if np.isinf(high):
        axes.plot(value + reach, y, marker=">", color=look["color"])


def no_estimate(axes: Axes, row: pd.Series, certified: float, y: int, bound: str) -> None:
    """Words beside the certified point, which is a bound then, or in place of it."""
    text = verdict(row) + (f": {bound} this" if is_known(certified) else ": no estimate")
    x = certified if is_known(certified) else 0.0
    axes.annotate(
        text,
        (x, y),
        xytext=(8, 0),
        textcoords="offset points",
        va="center",
        fontsize="small",
        color=DARK,
    )
