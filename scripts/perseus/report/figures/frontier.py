"""Rates that tenants reach together, against dedicated servers at the same cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report import who_shares
from perseus.report.figure_data import FigureData
from perseus.report.marks import (
    CERTIFIED,
    MOST_PANELS,
    MOST_ROWS,
    ROW_MM,
    furthest,
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
    short,
    verdict,
    wrapped_title,
)
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Points beyond the dashed line are rates that only a shared server reaches at this cost. An"
    " arrow: the interval goes on. First failing is one window, the lowest of all repeats, and may"
    " lie below the interval, which weighs all windows. Of three tenants and more a row is a mix,"
    " the best on top; the larger a mark beside it, the more of the load is that tenant's."
)

BLUE = "#0072B2"
FAR = 10.0
"""Times an estimate lies beyond the axes: where an interval ends that is open above."""

PLANE_MM = 100.0
SCALES = (("estimate", "o"), ("certified", "D"), ("first_failing", "x"))
PREDICTED: dict[str, Any] = {"marker": "o", "color": BLUE, "fillstyle": "none"}


def data(results: FigureData) -> pd.DataFrame:
    """The load lines, dedicated ones too: the ends of the dashed line."""
    return results.peaks


def draw(peaks: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Rates that tenants reach together, against what dedicated servers give for the same cost."""
    shared = peaks[peaks["kind"] != "dedicated"]
    if shared.empty:
        return nothing(style, "no shared scenario in this study")
    tenants_of = dict(list(results.tenants.groupby("scenario")))
    of = {
        str(name): (lines, tenants_of[name])
        for name, lines in shared.groupby("scenario", sort=False)
    }
    scenarios = [name for name, (_, tenants) in of.items() if not _is_empty(tenants)]
    if not scenarios:
        return nothing(style, "no scenario in which each tenant has a dedicated peak")
    shown = scenarios[:MOST_PANELS]
    parts = [of[name] for name in shown]
    heights = [_height_mm(*part) for part in parts]
    columns = min(2, len(shown)) if set(heights) == {PLANE_MM} else 1
    rows_mm = [0.8 * PLANE_MM] * -(-len(shown) // 2) if columns == 2 else heights
    figure, axes = panels(style, len(shown), columns, rows_mm)
    for panel, scenario, (lines, tenants) in zip(axes, shown, parts, strict=True):
        names = list(dict.fromkeys(tenants["tenant"]))
        wrapped_title(panel, scenario, style, columns)
        if len(names) == 2:
            _plane(panel, results, lines, tenants, names)
        else:
            _ratios(panel, results, lines)
            if len(lines) > MOST_ROWS:
                panel.set_title(f"{scenario}: {MOST_ROWS} of {len(lines)} load lines", loc="left")
    handles = [
        Line2D([], [], color=GREY, linestyle="--", label="dedicated servers, same cost (ratio 1)"),
        Line2D([], [], marker="o", color=BLUE, label="estimate, 95 % interval"),
        Line2D([], [], **CERTIFIED, label="certified"),
        Line2D([], [], marker="x", color="#D55E00", linestyle="none", label="first failing"),
    ]
    if (shared["verdict"] == "predicted").any():
        handles.append(Line2D([], [], **PREDICTED, linestyle="none", label="predicted"))
    legend(figure, handles, 2)
    empty = [name for name in of if name not in scenarios]
    remainder(figure, len(shown), len(scenarios), "scenarios", "peaks.csv", empty)
    return figure


def _is_empty(tenants: pd.DataFrame) -> bool:
    """Whether a plane of two tenants has no line to hold its points against."""
    mine = tenants.drop_duplicates("tenant")
    return len(mine) == 2 and not mine["dedicated_rps"].map(is_known).all()


def _height_mm(lines: pd.DataFrame, tenants: pd.DataFrame) -> float:
    """Of a panel: square for two tenants, else a row for each load line."""
    if tenants["tenant"].nunique() == 2:
        return PLANE_MM
    return 50 + ROW_MM * min(len(lines), MOST_ROWS)  # names of tenants stand above


def _plane(
    axes: Axes, results: FigureData, lines: pd.DataFrame, tenants: pd.DataFrame, names: list[str]
) -> None:
    """Two tenants: one axis each."""
    capacity = [float(tenants[tenants["tenant"] == n]["dedicated_rps"].iloc[0]) for n in names]
    axes.set_xlabel(f"{names[0]} (requests/s)")
    axes.set_ylabel(f"{names[1]} (requests/s)")
    marks: list[tuple[np.ndarray, str]] = []
    intervals: list[np.ndarray] = []
    named: list[tuple[str, np.ndarray]] = []
    for i, name in enumerate(names):
        alone, axis = results.alone(lines.iloc[0], name), np.eye(2)[i]
        marks += [(alone[f"{scale}_rps"] * axis, look) for scale, look in SCALES]
        intervals.append(np.outer(alone[["ci_low_rps", "ci_high_rps"]].to_numpy(float), axis))
    for _, row in lines.iterrows():
        mine = tenants[tenants["load_line"] == row["load_line"]].drop_duplicates("tenant")
        base, step = mine["base_rps"].to_numpy(), mine["direction_rps"].to_numpy()
        marks += [(base + row[f"{scale}_scale"] * step, look) for scale, look in _scales(row)]
        ends = row[["ci_low_scale", "ci_high_scale"]].to_numpy(float)
        if is_known(row["estimate_scale"]):
            high = FAR * row["estimate_scale"] if np.isinf(ends[1]) else ends[1]
            intervals.append(base + np.outer([max(ends[0], 0), high], step))
        scales = row[["certified_scale", "first_failing_scale", "ci_high_scale"]].to_numpy(float)
        if np.isfinite(scales).any():
            estimate = row["estimate_scale"]
            highs = scales[2], 1.3 * estimate, estimate
            reach = np.nanmax([[*scales[:2], high] for high in highs], axis=1)
            reach[np.isinf(reach)] = np.nan
            named.append((short(row).removeprefix("mix "), base + np.outer(reach, step)))
    axes.plot([capacity[0], 0], [0, capacity[1]], "--", color=GREY, zorder=1)
    reached = np.vstack([np.array(capacity), *(point for point, _ in marks)])
    limit = np.nanmax(np.where(np.isfinite(reached), reached, np.nan), axis=0) * (1.25, 1.15)
    axes.set_xlim(0, limit[0])
    axes.set_ylim(0, limit[1])
    for ends in intervals:
        _interval(axes, ends, limit)
    for name, points in named:  # at the end of a line, or before that where it goes on
        inside = points[(points <= limit).all(axis=1)]
        if len(inside):
            axes.annotate(
                name,
                inside[0],
                xytext=(6, 5),
                textcoords="offset points",
                fontsize="small",
                color=DARK,
            )
    for point, look in marks:
        _mark(axes, point, look)
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


def _scales(row: pd.Series) -> Iterator[tuple[str, str]]:
    """Which scales of a load line are marked, and how."""
    for scale, look in SCALES:
        is_predicted = scale == "estimate" and row["verdict"] == "predicted"
        yield scale, "p" if is_predicted else look


def _interval(axes: Axes, ends: np.ndarray, limit: np.ndarray) -> None:
    """A thick line between two points (rows), with an arrow where it leaves the axes."""
    if not np.isfinite(ends[0]).all():
        return
    low, way = ends[0], np.nan_to_num(ends[1], posinf=1e9) - ends[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.nanmin(np.where(way > 0, (limit - low) / way, np.inf))
    last = low + min(inside, 1.0) * way
    axes.plot(*np.array([low, last]).T, color=BLUE, linewidth=2.5, alpha=0.6, clip_on=False)
    if inside < 1:
        look = {"arrowstyle": "-|>", "color": BLUE, "linewidth": 2.5, "shrinkA": 0, "shrinkB": 0}
        before = last - way / np.linalg.norm(way / limit) * 0.02
        axes.annotate("", last, before, arrowprops=look, annotation_clip=False)


def _mark(axes: Axes, point: np.ndarray, kind: str) -> None:
    look: dict[str, Any] = {
        "o": {"marker": "o", "color": BLUE},
        "p": PREDICTED,
        "D": CERTIFIED,
        "x": {"marker": "x", "color": "#D55E00"},
    }[kind]
    if np.isfinite(point).all():
        axes.plot(*point, **{**look, "linestyle": "none"}, clip_on=False, zorder=5)


def _ratios(axes: Axes, results: FigureData, lines: pd.DataFrame) -> None:
    """More tenants than a plane can show: one row per load line, those that share best on top."""
    lines = lines.sort_values("sharing_ratio", ascending=False, kind="stable").head(MOST_ROWS)
    axes.axvline(1, color=GREY, linestyle="--")
    limit = furthest(lines[["sharing_ratio", "certified_sharing_ratio"]])
    for y, (_, row) in enumerate(lines.iterrows()):
        if is_known(row["sharing_ratio"]):
            names = ("sharing_ratio", "sharing_ratio_low", "sharing_ratio_high")
            filled = "none" if row["verdict"] == "predicted" else "full"
            ends = tuple(row[name] for name in names)
            interval(axes, y, ends, limit, fmt="o", color=BLUE, fillstyle=filled)
        else:
            axes.text(1, y, f"  {verdict(row)}", va="center", color=DARK)
        if is_known(row["certified_sharing_ratio"]):
            axes.plot(row["certified_sharing_ratio"], y, **CERTIFIED)
    axes.set_yticks(range(len(lines)), [short(row) for _, row in lines.iterrows()])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlabel("sharing ratio:\ndedicated servers replaced by one shared server")
    who_shares.beside(axes, results, lines)
