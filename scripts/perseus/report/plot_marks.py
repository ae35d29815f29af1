"""Draw values with intervals in figures with one row for each load line, and choose the rows that a
figure shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from perseus.report.style import DARK, is_known, verdict

MAX_ROWS, MAX_PANELS = 30, 6

MAX_ROWS_IN_ALL = 36
"""All panels of a figure together have at most this many rows. A reader finds more rows in the CSV
file of the figure."""

CERTIFIED: dict[str, Any] = {
    "marker": "D",
    "color": "white",
    "markeredgecolor": DARK,
    "linestyle": "none",
}
BASELINE: dict[str, Any] = {"marker": "|", "color": DARK, "markersize": 11, "linestyle": "none"}


def by_server(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return, by server, the rows that a figure shows: at most MAX_ROWS for each of the first
    MAX_PANELS servers, and at most MAX_ROWS_IN_ALL in total.

    If a server has too many load lines, one third of its returned load lines are dedicated, and two
    thirds are shared. If there are too few load lines of one kind, the function returns more load
    lines of the other kind. In `rows`, dedicated load lines come before shared load lines.
    """
    servers = list(dict.fromkeys(rows["server"]))[:MAX_PANELS]
    of_each = {server: rows[rows["server"] == server] for server in servers}
    counts = [len(of) for of in of_each.values()]
    fits = (n for n in range(MAX_ROWS, 1, -1) if sum(min(n, c) for c in counts) <= MAX_ROWS_IN_ALL)
    most = next(fits, 1)
    return {server: _first(of, most) for server, of in of_each.items()}


def _first(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    is_alone = rows["kind"] == "dedicated"
    alone = max(most // 3, most - int((~is_alone).sum()))
    number = is_alone.groupby(is_alone).cumcount()
    return rows[np.where(is_alone, number < alone, number < most - min(alone, int(is_alone.sum())))]


BEYOND = 0.3
"""If an interval has no upper end, the figure draws it up to (1 + BEYOND) times the value."""

FAR = 1.5
"""If the end of an interval exceeds this factor times the largest value in the figure, the figure
draws an arrow in place of the end."""


def furthest(values: pd.DataFrame) -> float:
    """Return the limit up to which a figure with `values` draws intervals. An interval beyond the
    limit ends in an arrow. If there are no values, the limit is infinite."""
    known = values.to_numpy(dtype=float)
    known = known[np.isfinite(known)]
    return FAR * float(known.max()) if known.size else np.inf


def interval(
    axes: Axes, y: float, ends: tuple[float, float, float], limit: float = np.inf, **look: Any
) -> None:
    """Draw a value with its horizontal interval. If the interval exceeds `limit`, it ends in an
    arrow. `ends` is (value, low, high)."""
    value, low, reach, goes_on = _shown(ends, limit)
    axes.errorbar(value, y, xerr=[[value - low], [reach]], capsize=2.5, **look)
    if goes_on:
        axes.plot(value + reach, y, marker=">", color=look["color"])


def upright(
    axes: Axes, x: float, ends: tuple[float, float, float], limit: float = np.inf, **look: Any
) -> None:
    """Draw a value with its vertical interval. If the interval exceeds `limit`, it ends in an
    arrow. `ends` is (value, low, high)."""
    value, low, reach, goes_on = _shown(ends, limit)
    axes.errorbar(x, value, yerr=[[value - low], [reach]], capsize=2.5, **look)
    if goes_on:
        axes.plot(x, value + reach, marker="^", color=look["color"])


def _shown(ends: tuple[float, float, float], limit: float) -> tuple[float, float, float, bool]:
    """Return what the figure draws of an interval: the value, the lower end, the length above the
    value, and whether the interval continues, so that it ends in an arrow."""
    value, low, high = ends
    last = min((1 + BEYOND) * value if np.isinf(high) else high, max(limit, value))
    return value, min(max(low, 0), value), max(last - value, 0), bool(high > last)


def no_estimate(axes: Axes, row: pd.Series, certified: float, y: int, bound: str) -> None:
    """Write the verdict of a load line without an estimate, in place of a mark. If `certified` (the
    certified rate, or the cost at this rate) is known, the text also says that the true value is
    `bound` ("at least" or "at most") this value."""
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
