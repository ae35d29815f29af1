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
    """Return the rows that a figure shows, by server.

    The result has at most MAX_ROWS rows for each of the first MAX_PANELS servers, and at most
    MAX_ROWS_IN_ALL rows in total. If a server has more load lines, one third of its rows are
    dedicated load lines, and two thirds are shared load lines. If there are too few load lines of
    one kind, load lines of the other kind take their places. In `rows`, dedicated load lines come
    before shared load lines.
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
    """Return the drawn part of an interval: the value, the lower end, and the length above the
    value. The fourth item is true if the interval ends in an arrow, since it is longer than the
    drawn part."""
    value, low, high = ends
    last = min((1 + BEYOND) * value if np.isinf(high) else high, max(limit, value))
    return value, min(max(low, 0), value), max(last - value, 0), bool(high > last)


def no_estimate(axes: Axes, row: pd.Series, certified: float, y: int, bound: str) -> None:
    """Write the verdict of a load line without an estimate, in place of a mark.

    `certified` is the certified rate of the load line or, in a figure of costs, the cost at this
    rate. If `certified` is known, the text is beside this value and says "at least this" or "at
    most this". `bound` is "at least" or "at most".
    """
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
