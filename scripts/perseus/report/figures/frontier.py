"""Figure: the rates that a shared server carries (its frontier), compared with dedicated servers of
the same cost."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report import sharing_labels
from perseus.report.figure_data import FigureData
from perseus.report.frontier_points import (
    PREDICTED,
    Marker,
    dedicated_markers,
    relative_speed,
    shared_markers,
)
from perseus.report.line_panels import columns_of
from perseus.report.plot_marks import (
    CERTIFIED,
    MAX_PANELS,
    MAX_ROWS,
    furthest,
    interval,
)
from perseus.report.style import (
    BESIDE_MM,
    DARK,
    GREY,
    MM,
    SMALL,
    characters,
    empty_figure,
    is_known,
    label_mark,
    legend,
    panels,
    remainder,
    row_names,
    rows_mm,
    short,
    text_mm,
    verdict,
    wrapped_title,
)
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Each point is a pair of rates that one server gets. Beyond the dashed line, a shared server"
    " carries more than dedicated servers of the same cost. Perseus converts the points to the"
    " speed that the host had when each model was measured alone; the table of peaks has the"
    " measured rates. An arrow means that an interval extends beyond the figure. The first failing"
    " rate is the lowest rate above the certified rate at which a window of any repeat failed. The"
    " interval of an estimate uses all windows, so the interval may lie above the first failing"
    " rate. For three or more models, each row is a mix. The mix with the highest sharing ratio is"
    " at the top. A larger marker means a higher rate of the model, relative to its dedicated peak."
)
ALSO = ("tenants", "costs")

BLUE, AREA = "#0072B2", "#dcebf5"
FAR = 10.0
"""If an interval has no upper bound, the figure draws the interval up to this multiple of the
estimate. The interval then continues beyond the axes."""

PLANE_MM, HEIGHT = 100.0, 0.8
"""A panel for two tenants is at most PLANE_MM high, and at most HEIGHT times as high as wide."""

EDGE = 1.05
"""The axes of a panel for two tenants end at EDGE times the largest rate of a marker or of an
interval. Long intervals are cut: the axes end at most at EDGE x LONGEST_INTERVAL times the largest
rate of a marker."""
LONGEST_INTERVAL = 1.25
TITLE_PT = 8.0  # distance to the panel below
MAX_LISTED = 6  # largest number of load lines without an estimate that a text names
SCALES = ("estimate", "certified", "first_failing")
FAILING: dict[str, Any] = {"marker": "x", "color": "#D55E00"}
HOLLOW: dict[str, Any] = {"marker": "o", "color": BLUE, "fillstyle": "none"}
LOOKS: dict[str, dict[str, Any]] = {
    "estimate": {"marker": "o", "color": BLUE},
    PREDICTED: HOLLOW,
    "certified": CERTIFIED,
    "first_failing": FAILING,
}


def data(results: FigureData) -> pd.DataFrame:
    """Return the table peaks: shared peaks are the points of the figure, and dedicated peaks are
    the ends of its dashed lines."""
    return results.peaks


def draw(peaks: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one panel for each shared scenario: the rates of its tenants on a shared server, and on
    dedicated servers of the same cost."""
    shared = peaks[peaks["kind"] != "dedicated"]
    if shared.empty:
        return empty_figure(style, "no shared scenario in this study")
    tenants_of = dict(list(results.tenants.groupby("scenario")))
    of = {
        str(name): (lines, tenants_of[name])
        for name, lines in shared.groupby("scenario", sort=False)
    }
    scenarios = [name for name, (_, tenants) in of.items() if not _is_empty(tenants)]
    if not scenarios:
        return empty_figure(style, "no scenario in which each tenant has a dedicated peak")
    shown = scenarios[:MAX_PANELS]
    parts = [of[name] for name in shown]
    are_planes = [tenants["tenant"].nunique() == 2 for _, tenants in parts]
    columns = columns_of(style, len(shown)) if all(are_planes) else 1
    plane_mm = min(PLANE_MM, HEIGHT * style.width_mm / columns)
    heights = [plane_mm] * -(-len(shown) // columns)
    if columns == 1:
        planes = zip(parts, are_planes, strict=True)
        heights = [plane_mm if plane else _ratios_mm(*part, style) for part, plane in planes]
    figure, axes = panels(style, len(shown), columns, heights)
    for panel, (lines, tenants) in zip(axes, parts, strict=True):
        if tenants["tenant"].nunique() == 2:
            wrapped_title(panel, _title(results, lines, style), style, columns)
            _plane(panel, results, lines, tenants, style, columns)
        else:
            many = f": {MAX_ROWS} of {len(lines)} load lines" if len(lines) > MAX_ROWS else ""
            above_pt = TITLE_PT + _names_mm(tenants, style) * 72 * MM
            title = f"{_title(results, lines, style)}{many}"
            wrapped_title(panel, title, style, columns, above_pt)
            _ratios(panel, results, _best(lines), style)
    handles: list[Artist] = [
        Line2D([], [], color=GREY, linestyle="--", label="dedicated servers, same cost (ratio 1)"),
        Line2D([], [], marker="o", color=BLUE, label="estimate, 95 % interval"),
        Line2D([], [], **CERTIFIED, label="certified"),
    ]
    if any(are_planes):
        handles.append(Patch(color=AREA, label="carried by one shared server"))
        handles.append(Line2D([], [], **FAILING, linestyle="none", label="first failing"))
    if (shared["verdict"] == "predicted").any():
        handles.append(Line2D([], [], **HOLLOW, linestyle="none", label="predicted"))
    legend(figure, handles, 2)
    empty = [name for name in of if name not in scenarios]
    remainder(figure, len(shown), len(scenarios), "scenarios", "peaks.csv", empty)
    return figure


def _title(results: FigureData, lines: pd.DataFrame, style: FigureTask) -> str:
    """Return the title of a panel: the server and, if the server has several scenarios, the
    scenario."""
    shared = results.peaks[results.peaks["kind"] != "dedicated"]
    return results.where(lines.iloc[0], shared, style.pricing)


def _is_empty(tenants: pd.DataFrame) -> bool:
    """Return whether a scenario of two tenants lacks at least one dedicated peak."""
    mine = tenants.drop_duplicates("tenant")
    return len(mine) == 2 and not mine["dedicated_rps"].map(is_known).all()


def _ratios_mm(lines: pd.DataFrame, tenants: pd.DataFrame, style: FigureTask) -> float:
    """Return the height in mm of a panel that has one row for each load line. The names of the
    tenants are above the rows."""
    names = row_names([short(row) for _, row in _best(lines).iterrows()], style)
    return 30 + _names_mm(tenants, style) + rows_mm(names, style)


def _names_mm(tenants: pd.DataFrame, style: FigureTask) -> float:
    return max(text_mm(name, SMALL * style.font_pt) for name in tenants["tenant"].unique())


def _plane(
    axes: Axes,
    results: FigureData,
    lines: pd.DataFrame,
    tenants: pd.DataFrame,
    style: FigureTask,
    columns: int,
) -> None:
    """Draw the panel of a scenario with two tenants, with one axis for each tenant. `columns` is
    the number of panels side by side."""
    names = list(dict.fromkeys(tenants["tenant"]))
    beside = characters((style.width_mm / columns - BESIDE_MM) / 2, SMALL * style.font_pt)
    capacity = [float(tenants[tenants["tenant"] == n]["dedicated_rps"].iloc[0]) for n in names]
    width = characters(0.6 * PLANE_MM, style.font_pt)
    axes.set_xlabel(fill(f"{names[0]} (requests/s)", width))
    axes.set_ylabel(fill(f"{names[1]} (requests/s)", width))
    markers: list[Marker] = []
    intervals: list[np.ndarray] = []
    named: list[tuple[str, np.ndarray]] = []
    for i, name in enumerate(names):
        alone = results.alone(lines.iloc[0], name)
        markers += dedicated_markers(alone, i, SCALES)
        ends = alone[["ci_low_rps", "ci_high_rps"]].to_numpy(float)
        intervals.append(np.outer(ends, np.eye(2)[i]))
    for _, row in lines.iterrows():
        mine = tenants[tenants["load_line"] == row["load_line"]].drop_duplicates("tenant")
        speed = relative_speed(row, mine)
        base, step = (mine[f"{of}_rps"].to_numpy() / speed for of in ("base", "direction"))
        markers += shared_markers(row, mine, SCALES)
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
    _area(axes, [marker.rates_rps for marker in markers if marker.scale in ("estimate", PREDICTED)])
    reached = _furthest([np.array(capacity), *(marker.rates_rps for marker in markers)])
    ends = _furthest([reached, *(ends[-1] for ends in intervals)])
    limit = EDGE * np.minimum(ends, LONGEST_INTERVAL * reached)
    axes.set_xlim(0, limit[0])
    axes.set_ylim(0, limit[1])
    for ends in intervals:
        _interval(axes, ends, limit)
    # A name is at the end of its interval, or nearer to the origin if the end is outside the axes.
    for name, points in named:
        inside = points[(points <= limit).all(axis=1)]
        if len(inside):
            background = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
            text = fill(name.replace(" %", "\N{NO-BREAK SPACE}%"), beside)
            label_mark(axes, text, tuple(inside[0]), bbox=background)
    for marker in markers:
        if np.isfinite(marker.rates_rps).all():
            look = {**LOOKS[marker.scale], "linestyle": "none"}
            axes.plot(*marker.rates_rps, **look, clip_on=False, zorder=5)
    missing = lines[~lines["estimate_scale"].map(is_known)]
    if len(missing):
        reasons = [f"{short(r)}: {verdict(r)}" for _, r in missing.head(MAX_LISTED).iterrows()]
        if len(missing) > MAX_LISTED:
            reasons.append(f"{len(missing) - MAX_LISTED} more")
        axes.text(
            0.02,
            0.03,
            "no estimate for\n" + "\n".join(fill(each, 2 * beside) for each in reasons),
            transform=axes.transAxes,
            fontsize="small",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )


def _furthest(points: list[np.ndarray]) -> np.ndarray:
    """Return the largest finite value along each axis."""
    every = np.vstack(points)
    return np.asarray(np.nanmax(np.where(np.isfinite(every), every, np.nan), axis=0))


def _area(axes: Axes, estimates: list[np.ndarray]) -> None:
    """Fill the area of the rates that one server carries according to the estimates. For each
    estimate, this area is a rectangle from the origin to the estimated rates.

    The function joins no two estimates by a line: plans do not assume that a server can carry more
    load of one model in exchange for less load of the other model.
    """
    for x, y in estimates:
        axes.fill([0, x, x, 0], [0, 0, y, y], color=AREA, linewidth=0, zorder=0)


def _interval(axes: Axes, ends: np.ndarray, limit: np.ndarray) -> None:
    """Draw an interval as a thick line between its two ends, the rows of `ends`. If the line leaves
    the axes, it ends in an arrow."""
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


def _best(lines: pd.DataFrame) -> pd.DataFrame:
    """Return at most MAX_ROWS load lines, sorted by sharing ratio with the highest first."""
    return lines.sort_values("sharing_ratio", ascending=False, kind="stable").head(MAX_ROWS)


def _ratios(axes: Axes, results: FigureData, lines: pd.DataFrame, style: FigureTask) -> None:
    """Draw the panel of a scenario with more than two tenants, with one row per load line."""
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
    rows = row_names([short(row) for _, row in lines.iterrows()], style)
    axes.set_yticks(range(len(lines)), rows)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlabel("sharing ratio:\ndedicated servers replaced by one shared server")
    sharing_labels.beside(axes, results, lines, style)
