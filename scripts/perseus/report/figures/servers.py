"""Figure: cost, latency and energy of each model and mix on the servers of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report.figure_data import COLOURS, FigureData
from perseus.report.plot_marks import furthest, interval
from perseus.report.style import (
    DARK,
    GREY,
    ROW_MM,
    empty_figure,
    legend,
    name_rows,
    panels,
    remainder,
    title_over,
    verdict,
)
from perseus.results.grids import on_front
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each row is a server, with the cheapest server on top. Marks further left are better. Each"
    " line is the 95 % interval of a cost. A server is on the Pareto front if no other server is"
    " better in cost, latency and energy at once. Energy counts only if it was measured on all"
    " servers."
)

MAX_PANELS, MAX_SERVERS = 8, 20
MAX_ROWS = 60
"""All panels together have at most this many rows."""
GOALS: Final = {
    "usd_per_million_inferences": "USD per million inferences",
    "p95_ms": "p95, certified (ms)",
    "joules_per_inference": "J per inference",
}
"""Quantities to minimise. The latency is the highest latency of all tenants and repeats."""
QUESTION: Final = ["mix", "load_line"]
COLUMNS: Final = [
    "pricing",
    *QUESTION,
    "server",
    "verdict",
    *GOALS,
    "ci_low_usd",
    "ci_high_usd",
    "on_front",
]
FRONT: Final[dict[str, Any]] = {"marker": "o", "color": COLOURS[0], "linestyle": "none"}
OTHER: Final[dict[str, Any]] = {"marker": "s", "color": GREY, "linestyle": "none"}


def data(results: FigureData) -> pd.DataFrame:
    """Return the rows of each model and mix that was measured on several servers, the cheapest
    server first."""
    costs = results.tables["costs"].copy()
    costs["p95_ms"] = [results.tenants_of(row)["p95_ms"].max() for _, row in costs.iterrows()]
    frames = [
        rows.sort_values("usd_per_million_inferences")
        for _, rows in costs.groupby(["pricing", *QUESTION], sort=False)
        if rows["server"].nunique() > 1
    ]
    frames = [rows.assign(on_front=_front(rows)) for rows in frames]
    return pd.concat(frames)[COLUMNS] if frames else pd.DataFrame(columns=COLUMNS)


def draw(weighed: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one row of panels for each model and mix."""
    chosen = weighed[weighed["pricing"] == style.pricing]
    questions = [rows for _, rows in chosen.groupby(QUESTION, sort=False)]
    if not questions:
        return empty_figure(style, "no model and no mix was measured on several servers")
    first = [rows.head(MAX_SERVERS) for rows in questions[:MAX_PANELS]]
    fit = int(np.searchsorted(np.cumsum([len(rows) for rows in first]), MAX_ROWS, side="right"))
    shown = first[: max(fit, 1)]
    goals = [goal for goal in GOALS if goal == "p95_ms" or chosen[goal].notna().any()]
    heights = [11 + ROW_MM * len(rows) for rows in shown]
    heights[-1] += 8  # for the labels of the axes
    figure, axes = panels(style, len(shown) * len(goals), len(goals), heights, sharex="col")
    for i, rows in enumerate(shown):
        row = axes[i * len(goals) : (i + 1) * len(goals)]
        _servers(row, goals, rows)
        title_over(row, results.mix_title(rows.iloc[0]), style)
    for panel, goal in zip(axes[-len(goals) :], goals, strict=True):
        panel.set_xlim(0, 1.04 * panel.get_xlim()[1])
        panel.set_xlabel(GOALS[goal])
    handles = [
        Line2D([], [], **FRONT, label="on the front"),
        Line2D([], [], **OTHER, label="worse than another"),
    ]
    legend(figure, handles, 2)
    drawn, total = sum(map(len, shown)), sum(map(len, questions))
    remainder(figure, drawn, total, "servers, models and mixes", "costs.csv")
    return figure


def _servers(axes: Sequence[Axes], goals: Sequence[str], rows: pd.DataFrame) -> None:
    limit = furthest(rows[["usd_per_million_inferences"]])
    for panel, goal in zip(axes, goals, strict=True):
        for y, (_, row) in enumerate(rows.iterrows()):
            look = FRONT if row["on_front"] else OTHER
            if pd.isna(row[goal]):
                text = verdict(row) if goal == "usd_per_million_inferences" else "not known"
                panel.text(0, y, f" {text}", va="center", fontsize="small", color=DARK)
            elif goal == "usd_per_million_inferences":
                ends = (row[goal], row["ci_low_usd"], row["ci_high_usd"])
                interval(panel, y, ends, limit, fmt=look["marker"], color=look["color"])
            else:
                panel.plot(row[goal], y, **look)
        name_rows(panel, list(rows["server"]) if panel is axes[0] else [""] * len(rows))


def _front(rows: pd.DataFrame) -> list[bool]:
    """Return, for each row, whether its server is on the Pareto front of the quantities in GOALS.

    A server is not on the front if its cost or its latency is unknown. The front takes energy into
    account only if energy is known for all servers with a known cost and latency.
    """
    known = rows[["usd_per_million_inferences", "p95_ms"]].notna().all(axis=1).to_numpy()
    energy = rows["joules_per_inference"].notna().to_numpy()
    goals = list(GOALS) if energy[known].all() else list(GOALS)[:2]
    best = np.zeros(len(rows), bool)
    best[known] = on_front(rows.loc[known, goals].to_numpy(dtype=float))
    return [bool(each) for each in best]
