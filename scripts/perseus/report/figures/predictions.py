"""Figure: predicted sharing ratios over measured sharing ratios, for each prediction model."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.peak.predicted.ladder import LadderStep
from perseus.report.figure_data import COLOURS, FigureData
from perseus.report.style import GREY, empty_figure, legend, panels
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each point is a measured mix. Its prediction uses measurements of each model alone and of"
    " other mixes, but not of the mix itself. A point on the line is predicted exactly; a point"
    " within the band has an error of at most 10 %. Each title names a prediction model and its"
    " median error. An arrow means that an interval extends beyond the figure."
)

FEWEST: Final = 3
"""The figure shows a prediction model if it predicts at least this many measured mixes."""
BAND: Final = 0.1
STEPS: Final = {f"{step.lower()}_ratio": step for step in LadderStep}
LOOK: Final[dict[str, Any]] = {
    "marker": "o",
    "color": COLOURS[0],
    "linestyle": "none",
    "markersize": 4,
}
COLUMNS: Final = ["server", "mix", "measured_ratio", "measured_low", "measured_high", *STEPS]


def data(results: FigureData) -> pd.DataFrame:
    """Return the measured mixes, each with the sharing ratio that each prediction model
    predicts."""
    every = results.tables["predictions"]
    return every[every["measured_ratio"].notna()][COLUMNS]


def draw(mixes: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw the predicted sharing ratio over the measured ratio; prediction models without
    predictions are left out."""
    steps = [step for step in STEPS if mixes[step].notna().sum() >= FEWEST]
    if not steps:
        return empty_figure(style, f"fewer than {FEWEST} mixes of a server were measured")
    low, high = _range(mixes, steps)
    columns = min(len(steps), 2)
    figure, axes = panels(style, len(steps), columns, 72, sharex=True, sharey=True)
    for panel, step in zip(axes, steps, strict=True):
        _step(panel, mixes, step, np.array([low, high]))
    axes[0].set_xlim(low, high)
    axes[0].set_ylim(low, high)
    figure.supxlabel("measured sharing ratio", fontsize=style.font_pt)
    figure.supylabel("predicted sharing ratio", fontsize=style.font_pt)
    handles = [
        Line2D([], [], **LOOK, label="a mix, 95 % interval of its measurement"),
        Line2D([], [], color=GREY, linestyle="--", label="exact; band: error of at most 10 %"),
    ]
    legend(figure, handles, 2)
    return figure


def _step(axes: Axes, mixes: pd.DataFrame, step: str, ends: np.ndarray) -> None:
    told = mixes[mixes[step].notna()]
    axes.fill_between(ends, ends * (1 - BAND), ends * (1 + BAND), color=GREY, alpha=0.2, lw=0)
    axes.plot(ends, ends, "--", color=GREY, zorder=1)
    low, high = (told[f"measured_{end}"].clip(*ends) for end in ("low", "high"))
    axes.hlines(told[step], low, high, color=COLOURS[0], linewidth=0.8)
    for edge, beyond, marker in (
        (ends[0], told["measured_low"] < ends[0], "<"),
        (ends[1], told["measured_high"] > ends[1], ">"),
    ):
        if beyond.any():
            at = np.full(beyond.sum(), edge)
            axes.plot(at, told.loc[beyond, step], **{**LOOK, "marker": marker}, clip_on=False)
    axes.plot(told["measured_ratio"], told[step], **LOOK)
    off = (told[step] / told["measured_ratio"] - 1).abs().median()
    axes.set_title(f"{STEPS[step]}, median error {off:.0%}\n{STEPS[step].description}", loc="left")


def _range(mixes: pd.DataFrame, steps: list[str]) -> tuple[float, float]:
    """Return the ends of both axes. The axes include all points, but very long intervals extend
    beyond the axes."""
    values = mixes[["measured_ratio", *steps]].to_numpy(dtype=float)
    known = values[np.isfinite(values)]
    low, high = float(known.min()), float(known.max())
    most = max(high - low, 0.1 * high) / 2
    lowest = max(float(mixes["measured_low"].min()), low - most)
    highest = min(float(mixes["measured_high"].max()), high + most)
    return 0.98 * min(lowest, low), 1.02 * max(highest, high)
