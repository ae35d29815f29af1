"""Figure: distributions of the start time of a server, of the load time of its models, and of the
latency of first and later inferences."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report.figure_data import FigureData
from perseus.report.style import DARK, GREY, empty_figure, legend, panels, remainder, title_over
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each curve shows the share of the starts that took at most a given time. A steep curve means"
    " that all starts take about the same time. The first user of a fresh server also waits for the"
    " first inference, which usually takes longer than later inferences (steady inference)."
)

MAX_SCENARIOS = 4
LEAST_MM = 30.0  # least width of a panel, if all panels of a scenario are side by side
DASHES: Final[dict[str, Literal["-", "--"]]] = {"warm": "-", "cold": "--"}
TIMES = {
    "ready_s": "start to\nready (s)",
    "load_s": "load of\na model (s)",
    "first_inference_ms": "first\ninference (ms)",
    "steady_inference_ms": "steady\ninference (ms)",
}


def draw(frame: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw empirical distribution functions over all starts: one row of panels per scenario."""
    frame = frame[frame["ready_s"].notna()]
    if frame.empty:
        return empty_figure(style, "no start of a server was measured")
    scenarios = list(dict.fromkeys(frame["scenario"]))
    shown = scenarios[:MAX_SCENARIOS]
    columns = len(TIMES) if style.width_mm >= LEAST_MM * len(TIMES) else len(TIMES) // 2
    figure, axes = panels(style, len(TIMES) * len(shown), columns, 62, sharey=True)
    for i, scenario in enumerate(shown):
        mine = frame[frame["scenario"] == scenario]
        row = axes[i * len(TIMES) : (i + 1) * len(TIMES)]
        title = results.where(mine.iloc[0], frame[["server", "scenario"]], style.pricing)
        title_over(row[:columns], title, style)
        for panel in row[::columns]:
            panel.set_ylabel("share of starts")
        for panel, (time, label) in zip(row, TIMES.items(), strict=True):
            _distributions(panel, results, mine, time)
            panel.set_xlabel(label)
            panel.set_xlim(left=0)
    states = [state for state in DASHES if state in set(frame["page_cache"])]
    handles = [
        *results.handles(frame["tenant"]),
        Line2D([], [], color=DARK, label="the server"),
        *(Line2D([], [], color=GREY, linestyle=DASHES[state], label=f"page cache {state}")
          for state in states),
    ]  # fmt: skip
    legend(figure, handles, 3)
    remainder(figure, len(shown), len(scenarios), "scenarios", "startup.csv")
    return figure


def _distributions(panel: Axes, results: FigureData, rows: pd.DataFrame, time: str) -> None:
    for state, of_state in rows.groupby("page_cache", sort=False):
        if time == "ready_s":
            starts = of_state.drop_duplicates(["cell", "start"])
            _ecdf(panel, starts[time], str(state), color=DARK)
            continue
        for tenant, of_tenant in of_state.groupby("tenant", sort=False):
            _ecdf(panel, of_tenant[time], str(state), **results.look(str(tenant)), markersize=3)


def _ecdf(panel: Axes, values: pd.Series, state: str, **look: Any) -> None:
    ordered = np.sort(values.dropna().to_numpy(dtype=float))
    if len(ordered):
        shares = np.arange(len(ordered) + 1) / len(ordered)
        steps = np.append(ordered[:1], ordered)
        panel.step(steps, shares, where="post", linestyle=DASHES[state], **look)
