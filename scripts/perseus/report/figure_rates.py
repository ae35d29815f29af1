"""Figures of the tables: peaks, the frontier of shared rates, and costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from perseus.report.figure_style import (
    DARK,
    GREY,
    Results,
    Style,
    is_known,
    legend,
    nothing,
    panels,
    remainder,
    say,
    short,
)

MOST_ROWS, MOST_PANELS = 30, 6
ROW_MM = 6.0

CERTIFIED: dict[str, Any] = {
    "marker": "D",
    "color": "white",
    "markeredgecolor": DARK,
    "linestyle": "none",
}
BASELINE: dict[str, Any] = {"marker": "|", "color": DARK, "markersize": 11, "linestyle": "none"}


def peaks(results: Results, style: Style) -> Figure:
    """Peak throughput of each load line, stacked by tenant, with its interval."""
    servers = list(dict.fromkeys(results.peaks["server"]))
    shown = servers[:MOST_PANELS]
    frames = [results.peaks[results.peaks["server"] == s].head(MOST_ROWS) for s in shown]
    heights = [16 + ROW_MM * len(frame) for frame in frames]
    heights[0] += 12
    figure, axes = panels(style, len(shown), 1, heights, sharex=True)
    for panel, server, frame in zip(axes, shown, frames, strict=True):
        _bars(panel, results, frame)
        panel.set_title(f"server {server}", loc="left")
    axes[0].set_xlim(left=0)  # shared, and only now: it ends the scaling to what is drawn
    axes[-1].set_xlabel("peak throughput, all tenants together (requests/s)")
    handles = [
        *(Patch(facecolor=results.colour(n), hatch=results.hatch(n), edgecolor="white", label=n)
          for n in results.names),
        Line2D([], [], color=DARK, label="95 % interval"),
        Line2D([], [], **CERTIFIED, label="certified"),
        Line2D([], [], **BASELINE, label="same mix on dedicated servers"),
    ]  # fmt: skip
    legend(figure, handles, 3)
    rows = sum(map(len, frames))
    remainder(figure, rows, len(results.peaks), "load lines", "peaks.csv")
    return figure


def _bars(axes: Axes, results: Results, frame: pd.DataFrame) -> None:
    for y, (_, row) in enumerate(frame.iterrows()):
        mine = results.tenants[
            (results.tenants["scenario"] == row["scenario"])
            & (results.tenants["load_line"] == row["load_line"])
        ]
        left = 0.0
        for tenant, rate in mine.groupby("tenant", sort=False)["estimate_rps"].mean().items():
            if is_known(rate):
                axes.barh(
                    y,
                    rate,
                    left=left,
                    height=0.62,
                    color=results.colour(str(tenant)),
                    hatch=results.hatch(str(tenant)),
                    edgecolor="white",
                    linewidth=0.6,
                )
                left += rate
        total = row["estimate_rps"]
        if is_known(row["ci_low_rps"]):
            ends = [[total - row["ci_low_rps"]], [row["ci_high_rps"] - total]]
            axes.errorbar(total, y, xerr=np.maximum(ends, 0), color=DARK, capsize=2.5, linewidth=1)
        if row["kind"] != "dedicated" and is_known(row["sharing_ratio"]):
            axes.plot(total / row["sharing_ratio"], y, **BASELINE)
        if is_known(row["certified_rps"]):
            axes.plot(row["certified_rps"], y, **CERTIFIED)
        if not is_known(total):
            _no_estimate(axes, row, row["certified_rps"], y, "at least")
    axes.set_yticks(range(len(frame)), [short(row) for _, row in frame.iterrows()])
    axes.set_ylim(len(frame) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)


def _no_estimate(axes: Axes, row: pd.Series, certified: float, y: int, bound: str) -> None:
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


def verdict(row: pd.Series) -> str:
    return str(row["verdict"]).replace("_", " ")


def frontier(results: Results, style: Style) -> Figure:
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
    axes: Axes, results: Results, lines: pd.DataFrame, tenants: pd.DataFrame, names: list[str]
) -> None:
    """Two tenants: one axis each."""
    capacity = [float(tenants[tenants["tenant"] == n]["dedicated_rps"].iloc[0]) for n in names]
    axes.set_xlabel(f"{names[0]} (requests/s)")
    axes.set_ylabel(f"{names[1]} (requests/s)")
    if not all(map(is_known, capacity)):
        say(axes, "a tenant has no dedicated peak")
        return
    axes.plot([capacity[0], 0], [0, capacity[1]], "--", color=GREY, zorder=1)
    server, reached = lines["server"].iloc[0], [np.array(capacity)]
    for i, name in enumerate(names):
        alone = results.peaks[
            (results.peaks["server"] == server)
            & (results.peaks["kind"] == "dedicated")
            & (results.peaks["mix"] == name)
        ].iloc[0]
        for scale, end in (("estimate", "o"), ("certified", "D"), ("first_failing", "x")):
            point = [0.0, 0.0]
            point[i] = alone[f"{scale}_rps"]
            _mark(axes, point, end)
            reached.append(np.array(point))
        ends = [[0.0, 0.0], [0.0, 0.0]]
        ends[i] = [alone["ci_low_rps"], alone["ci_high_rps"]]
        axes.plot(*ends, color="#0072B2", linewidth=2.5, alpha=0.6)
    for _, row in lines.iterrows():
        mine = tenants[tenants["load_line"] == row["load_line"]].drop_duplicates("tenant")
        base, step = mine["base_rps"].to_numpy(), mine["direction_rps"].to_numpy()
        ends_at = np.array([base + row[f"ci_{end}_scale"] * step for end in ("low", "high")])
        axes.plot(*ends_at.T, color="#0072B2", linewidth=2.5, alpha=0.6)
        for scale, end in (("estimate", "o"), ("certified", "D"), ("first_failing", "x")):
            reached.append(base + row[f"{scale}_scale"] * step)
            _mark(axes, reached[-1], end)
        scales = row[["certified_scale", "ci_high_scale", "first_failing_scale"]].to_numpy(float)
        if np.isfinite(scales).any():
            axes.annotate(
                short(row).removeprefix("mix "),
                base + np.nanmax(scales) * step,
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
            ends = [[row["sharing_ratio"] - row["sharing_ratio_low"]],
                    [row["sharing_ratio_high"] - row["sharing_ratio"]]]  # fmt: skip
            axes.errorbar(
                row["sharing_ratio"],
                y,
                xerr=np.maximum(ends, 0),
                fmt="o",
                color="#0072B2",
                capsize=2.5,
            )
        else:
            axes.text(1, y, f"  {verdict(row)}", va="center", color=DARK)
        if is_known(row["certified_sharing_ratio"]):
            axes.plot(row["certified_sharing_ratio"], y, **CERTIFIED)
    axes.set_yticks(range(len(lines)), [short(row) for _, row in lines.iterrows()])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlabel("sharing ratio: dedicated servers replaced by one shared server")


def costs(results: Results, style: Style) -> Figure:
    """What a million inferences cost on each load line, and on dedicated servers."""
    chosen = results.costs[results.costs["pricing"] == style.pricing]
    if chosen.empty:
        return nothing(style, f"no {style.pricing.replace('_', '-')} price for these servers")
    servers = list(dict.fromkeys(chosen["server"]))
    shown = servers[:MOST_PANELS]
    frames = [chosen[chosen["server"] == server].head(MOST_ROWS) for server in shown]
    heights = [20 + ROW_MM * len(frame) for frame in frames]
    heights[0] += 8
    figure, axes = panels(style, len(shown), 1, heights, sharex=True)
    for panel, server, frame in zip(axes, shown, frames, strict=True):
        first = frame.iloc[0]
        panel.set_title(
            f"server {server}\n{first['instance']} in {first['region']},"
            f" {first['usd_per_hour']:g} USD/h {style.pricing.replace('_', '-')}",
            loc="left",
        )
        _prices(panel, frame)
    axes[0].set_xlim(left=0)
    axes[-1].set_xlabel("USD per million inferences")
    handles = [
        Line2D([], [], marker="o", color="#0072B2", label="at the estimated limit, 95 % interval"),
        Line2D([], [], **CERTIFIED, label="at the certified rate"),
        Line2D([], [], **BASELINE, label="same mix on dedicated servers"),
    ]
    legend(figure, handles, 3)
    remainder(figure, sum(map(len, frames)), len(chosen), "load lines", "costs.csv")
    return figure


def _prices(axes: Axes, frame: pd.DataFrame) -> None:
    for y, (_, row) in enumerate(frame.iterrows()):
        usd = row["usd_per_million_inferences"]
        if is_known(usd):
            ends = [[usd - row["ci_low_usd"]], [row["ci_high_usd"] - usd]]
            axes.errorbar(usd, y, xerr=np.maximum(ends, 0), fmt="o", color="#0072B2", capsize=2.5)
        else:
            _no_estimate(axes, row, row["usd_per_million_certified"], y, "at most")
        if row["kind"] != "dedicated" and is_known(row["dedicated_usd_per_million"]):
            axes.plot(row["dedicated_usd_per_million"], y, **BASELINE)
        if is_known(row["usd_per_million_certified"]):
            axes.plot(row["usd_per_million_certified"], y, **CERTIFIED)
    axes.set_yticks(range(len(frame)), [short(row) for _, row in frame.iterrows()])
    axes.set_ylim(len(frame) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
