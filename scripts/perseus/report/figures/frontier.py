"""Rates that tenants reach together, against dedicated servers at the same cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report.figure_data import FigureData
from perseus.report.marks import (
    CERTIFIED,
    MOST_PANELS,
    interval,
)
from perseus.report.style import (
    DARK,
    GREY,
    is_known,
    legend,
    nothing,
    panels,
    remainder,
    say,
    short,
    verdict,
)
from perseus.study.tasks.figure import FigureTask

CAPTION = "Points beyond the dashed line are rates that only a shared server reaches at this cost."


FAR = 10.0
"""Times an estimate lies beyond the axes: where an interval ends that is open above."""


def draw(results: FigureData, style: FigureTask) -> Figure:
    """Rates that tenants reach together, against what dedicated servers give for the same cost."""
    shared = results.peaks[results.peaks["kind"] != "dedicated"]
    scenarios = list(dict.fromkeys(shared["scenario"]))
    if not scenarios:
        return nothing(style, "no shared scenario in this study")
    shown = scenarios[:MOST_PANELS]
    columns = min(2, len(shown))
    figure, axes = panels(style, len(shown), columns, 100 if columns == 1 else 80)
    for panel, scenario in zip(axes, shown, strict=True):
        lines = shared[shared["scenario"] == scenario]
        tenants = results.tenants[results.tenants["scenario"] == scenario]
        names = list(dict.fromkeys(tenants["tenant"]))
        panel.set_title(scenario, loc="left")
        if len(names) == 2:
            _plane(panel, results, lines, tenants, names)
        else:
            _ratios(panel, lines)
    handles = [
        Line2D([], [], color=GREY, linestyle="--", label="dedicated servers, same cost (ratio 1)"),
        Line2D([], [], marker="o", color="#0072B2", label="estimate, 95 % interval"),
        Line2D([], [], **CERTIFIED, label="certified"),
        Line2D([], [], marker="x", color="#D55E00", linestyle="none", label="first failing"),
    ]
    legend(figure, handles, 2)
    remainder(figure, len(shown), len(scenarios), "scenarios", "peaks.csv")
    return figure


def _plane(
    axes: Axes, results: FigureData, lines: pd.DataFrame, tenants: pd.DataFrame, names: list[str]
) -> None:
    """Two tenants: one axis each."""
    capacity = [float(tenants[tenants["tenant"] == n]["dedicated_rps"].iloc[0]) for n in names]
    axes.set_xlabel(f"{names[0]} (requests/s)")
    axes.set_ylabel(f"{names[1]} (requests/s)")
    if not all(map(is_known, capacity)):
        say(axes, "a tenant has no dedicated peak")
        return
    axes.plot([capacity[0], 0], [0, capacity[1]], "--", color=GREY, zorder=1)
    reached = [np.array(capacity)]
    for i, name in enumerate(names):
        alone = results.alone(lines.iloc[0], name)
        for scale, end in (("estimate", "o"), ("certified", "D"), ("first_failing", "x")):
            point = [0.0, 0.0]
            point[i] = alone[f"{scale}_rps"]
            _mark(axes, point, end)
            reached.append(np.array(point))
        ends = [[0.0, 0.0], [0.0, 0.0]]
        ends[i] = [alone["ci_low_rps"], min(alone["ci_high_rps"], FAR * alone["estimate_rps"])]
        axes.plot(*ends, color="#0072B2", linewidth=2.5, alpha=0.6)
    for _, row in lines.iterrows():
        mine = tenants[tenants["load_line"] == row["load_line"]].drop_duplicates("tenant")
        base, step = mine["base_rps"].to_numpy(), mine["direction_rps"].to_numpy()
        high = min(row["ci_high_scale"], FAR * row["estimate_scale"])
        ends_at = np.array([base + scale * step for scale in (row["ci_low_scale"], high)])
        axes.plot(*ends_at.T, color="#0072B2", linewidth=2.5, alpha=0.6)
        for scale, end in (("estimate", "o"), ("certified", "D"), ("first_failing", "x")):
            reached.append(base + row[f"{scale}_scale"] * step)
            _mark(axes, reached[-1], end)
        scales = row[["certified_scale", "ci_high_scale", "first_failing_scale"]].to_numpy(float)
        if np.isfinite(scales).any():
            axes.annotate(
                short(row).removeprefix("mix "),
                base + scales[np.isfinite(scales)].max() * step,
                xytext=(6, 5),
                textcoords="offset points",
                fontsize="small",
                color=DARK,
            )
    furthest = np.nanmax(np.vstack(reached), axis=0)  # an interval may reach further
    axes.set_xlim(0, 1.25 * furthest[0])
    axes.set_ylim(0, 1.15 * furthest[1])
    missing = lines[~lines["estimate_scale"].map(is_known)]
    if len(missing):
        said = [f"{short(r)}: {verdict(r)}" for _, r in missing.iterrows()]
        axes.text(
            0.02,
            0.03,
            "no estimate for\n" + "\n".join(said),
            transform=axes.transAxes,
            fontsize="small",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )


def _mark(axes: Axes, point: np.ndarray | list[float], kind: str) -> None:
    look: dict[str, Any] = {
        "o": {"marker": "o", "color": "#0072B2"},
        "D": CERTIFIED,
        "x": {"marker": "x", "color": "#D55E00"},
    }[kind]
    if np.isfinite(point).all():
        axes.plot(*point, **{**look, "linestyle": "none"}, clip_on=False, zorder=5)


def _ratios(axes: Axes, lines: pd.DataFrame) -> None:
    """More tenants than a plane can show: one row per load line."""
    axes.axvline(1, color=GREY, linestyle="--")
    for y, (_, row) in enumerate(lines.iterrows()):
        if is_known(row["sharing_ratio"]):
            names = ("sharing_ratio", "sharing_ratio_low", "sharing_ratio_high")
            interval(axes, y, tuple(row[name] for name in names), fmt="o", color="#0072B2")
        else:
            axes.text(1, y, f"  {verdict(row)}", va="center", color=DARK)
        if is_known(row["certified_sharing_ratio"]):
            axes.plot(row["certified_sharing_ratio"], y, **CERTIFIED)
    axes.set_yticks(range(len(lines)), [short(row) for _, row in lines.iterrows()])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlabel("sharing ratio: dedicated servers replaced by one shared server")
