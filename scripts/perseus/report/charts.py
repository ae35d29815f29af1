"""Make the data of the interactive charts of the page.

The page contains the points of each chart as JSON. The script pictures.js draws the chart, and
offers the points as a CSV file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from perseus.report.figure_data import COLOURS, FigureData
from perseus.report.frontier_points import PREDICTED, Marker, dedicated_markers, shared_markers
from perseus.report.numbers import bounds, significant
from perseus.report.shown_tables import plain_words
from perseus.report.style import MAX_WEIGHTS, short
from perseus.results.fleets.plans import HOURS_PER_MONTH

CLOSED_LOOP: Final = "closed loop"
"""Label of a window in a closed loop. A closed loop has no SLA, so the window has no verdict."""
VERDICTS: Final = {
    "pass": "#009E73",
    "fail": "#D55E00",
    "undecided": "#0072B2",
    CLOSED_LOOP: "#0072B2",
    "invalid": "#777777",
}
"""Colour of a window in a chart, by the verdict of the window."""
SCALES: Final = {
    "estimate": ("estimate", "#0072B2"),
    "certified": ("certified", "#009E73"),
    "first_failing": ("first failing", "#D55E00"),
}
"""Name and colour of each kind of point in the chart of a frontier. A key is a value of
`Marker.scale`."""
MARKS: Final = {**SCALES, PREDICTED: ("predicted", "#56B4E9")}
"""SCALES, and an additional kind of point: the estimate of a mix that Perseus predicted but did not
measure."""
UTILISATION: Final = {"CPU (cores)": "cpu", "GPU (share)": "gpu"}
"""Quantities of the monitor that have a chart, each with the first word in the name of its CSV
file."""
GREY: Final = "#888888"
ENDS: Final = ("ci_low", "ci_high")
"""Values of `Marker.scale` at the two ends of the interval of an estimate."""
INTERVAL: Final = "#56A0D3"
"""Colour of the intervals in a chart."""
OPEN_END: Final = 1.5
"""If an interval has no upper bound, the chart draws it up to the estimate times this factor."""

Point = tuple[float, float, str]
"""A point of a series: x, y and a label."""


@dataclass(frozen=True)
class Series:
    """A series of points of a chart, with one name in the legend.

    `look` is the style of the marks: a key of LOOKS in pictures.js. `names` has a label for each
    point, or is empty.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: str
    look: str = "points"
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Chart:
    """A chart. `x` and `y` are the titles of the axes, and `id` is the name of the CSV file.

    If `has_logarithm` is true, the y axis is logarithmic. If `from_zero` is true, both axes begin
    at 0. `labels` has pairs of a place on the x axis and a text. If `labels` is not empty, the x
    axis shows these texts in place of numbers.
    """

    id: str
    title: str
    x: str
    y: str
    series: Sequence[Series]
    has_logarithm: bool = False
    from_zero: bool = False
    labels: Sequence[tuple[float, str]] = ()

    @property
    def json(self) -> str:
        """Return the JSON of the chart for pictures.js, escaped for a script element."""
        plain: dict[str, Any] = {
            "id": self.id,
            "x": self.x,
            "y": self.y,
            "log": self.has_logarithm,
            "zero": self.from_zero,
            "labels": [(_number(x), text) for x, text in self.labels],
            "series": [
                {
                    "name": each.name,
                    "colour": each.colour,
                    "look": each.look,
                    "x": list(map(_number, each.x)),
                    "y": list(map(_number, each.y)),
                    "names": list(each.names),
                }
                for each in self.series
            ],
        }
        return json.dumps(plain, separators=(",", ":")).replace("<", "\\u003c")


def of_windows(windows: pd.DataFrame, line: str) -> Iterator[Chart]:
    """Yield two charts of a search: the offered rate of each window over time, and the latency of
    each tenant over the offered rate.

    If too many requests of a window failed, its latency is infinite. Only the CSV file of the chart
    has infinite latencies. `windows` has the rows of windows.parquet for all repeats of the load
    line.
    """
    began_ns = windows.groupby("cell")["start_ns"].transform("min")
    timed = windows.assign(minute=(windows["start_ns"] - began_ns) / 60e9)
    each = timed.groupby(["cell", "window"], sort=False).agg(
        minute=("minute", "min"), rps=("offered_rps", "sum"), verdict=("window_verdict", "first")
    )
    searched = [
        Series(
            plain_words(str(verdict)),
            list(rows["minute"]),
            list(rows["rps"]),
            _colour(str(verdict)),
        )
        for verdict, rows in each.groupby("verdict", sort=True)
    ]
    yield Chart(
        f"search-{line}",
        "The search: load of each window over time, by verdict",
        "minutes since the start",
        "offered load (requests/s)",
        searched,
    )
    total = timed.groupby(["cell", "window"])["offered_rps"].transform("sum")
    known = timed.assign(total=total).dropna(subset="sla_percentile_ms")
    latencies = [
        Series(
            f"{tenant} (SLA {rows['sla_ms'].iloc[0]:g} ms)",
            list(rows["total"]),
            list(rows["sla_percentile_ms"]),
            COLOURS[i % len(COLOURS)],
        )
        for i, (tenant, rows) in enumerate(known.groupby("tenant", sort=False))
    ]
    infinite = int(timed["sla_percentile_ms"].map(math.isinf).sum())
    left_out = f"; infinite values, only in the CSV file: {infinite}" if infinite else ""
    if latencies:
        yield Chart(
            f"latency-{line}",
            f"Latency at the percentile of the SLA over load{left_out}",
            "offered load, all tenants (requests/s)",
            "latency (ms)",
            latencies,
            has_logarithm=True,
        )


def of_samples(samples: pd.DataFrame, line: str) -> Iterator[Chart]:
    """Yield one chart for each quantity in UTILISATION, with the utilisation of the server and the
    client over time.

    `samples` has the rows of the function `perseus.report.samples.samples` for all repeats of the
    load line.
    """
    for quantity in (name for name in UTILISATION if name in set(samples["quantity"])):
        mine = samples[samples["quantity"] == quantity]
        series = [
            Series(
                f"{who}, {str(cell).rpartition('.')[2]}",
                list(rows["time_s"]),
                list(rows["value"]),
                COLOURS[i % len(COLOURS)],
                "line",
            )
            for i, ((cell, who), rows) in enumerate(mine.groupby(["cell", "who"], sort=False))
        ]
        name = f"{UTILISATION[quantity]}-{line}"
        yield Chart(name, f"Utilisation: {quantity}", "seconds since the start", quantity, series)


def of_frontiers(tables: Mapping[str, pd.DataFrame]) -> Iterator[Chart]:
    """Yield a chart for each shared scenario. For two tenants, the chart shows the frontier; for
    three or more tenants, the sharing ratio of each mix."""
    results = FigureData(tables)
    shared = results.peaks[results.peaks["kind"] != "dedicated"]
    tenants_of = dict(list(results.tenants.groupby("scenario")))
    for scenario, lines in shared.groupby("scenario", sort=False):
        tenants = tenants_of[scenario]
        names = list(dict.fromkeys(tenants["tenant"]))
        if len(names) > 2:
            yield from _ratios(str(scenario), lines, names)
            continue
        alone_rps = [tenants[tenants["tenant"] == n]["dedicated_rps"].iloc[0] for n in names]
        if len(names) != 2 or not all(map(math.isfinite, alone_rps)):
            continue
        markers: list[Marker] = []
        for i, name in enumerate(names):
            alone = results.alone(lines.iloc[0], name)
            markers += dedicated_markers(alone, i, list(SCALES))
            markers += dedicated_markers(_with_open_end(alone, "rps"), i, ENDS)
        for _, line in lines.iterrows():
            mine = tenants[tenants["load_line"] == line["load_line"]].drop_duplicates("tenant")
            markers += shared_markers(line, mine, list(SCALES))
            markers += shared_markers(_with_open_end(line, "scale"), mine, ENDS)
        dedicated = Series(
            "dedicated, same cost", [0, alone_rps[0]], [alone_rps[1], 0], GREY, "dashed"
        )
        yield Chart(
            f"frontier-{scenario}",
            f"Frontier: requests/s of both models on one server ({scenario})",
            f"{names[0]} (requests/s)",
            f"{names[1]} (requests/s)",
            [dedicated, *_intervals(markers), *_of_scales(markers)],
            from_zero=True,
        )


def _ratios(scenario: str, lines: pd.DataFrame, names: Sequence[str]) -> Iterator[Chart]:
    """Yield a chart with the sharing ratio of each mix of a scenario, with its interval. The mix
    with the highest ratio comes first. If no mix has a known ratio, yield nothing."""
    known = lines[np.isfinite(lines["sharing_ratio"])]
    known = known.sort_values("sharing_ratio", ascending=False, kind="stable")
    if known.empty:
        return
    ends: list[Point] = []
    of: dict[str, list[Point]] = {scale: [] for scale in MARKS}
    for place, (_, line) in enumerate(known.iterrows(), start=1):
        mix, ratio = str(line["mix"]), line["sharing_ratio"]
        of[PREDICTED if line["verdict"] == PREDICTED else "estimate"] += [(place, ratio, mix)]
        if math.isfinite(line["certified_sharing_ratio"]):
            of["certified"] += [(place, line["certified_sharing_ratio"], mix)]
        low, high = line["sharing_ratio_low"], line["sharing_ratio_high"]
        if math.isfinite(low) and not math.isnan(high):
            name = f"{mix}: {bounds(low, high, significant)}"
            last = OPEN_END * ratio if math.isinf(high) else high
            ends += [(place, low, name), (place, last, name)]
    beside = 0.5, len(known) + 0.5
    are_few = len(names) <= MAX_WEIGHTS
    yield Chart(
        f"frontier-{scenario}",
        f"Sharing ratio of each mix: dedicated servers that one server replaces ({scenario})",
        f"mix ({' : '.join(names)})" if are_few else "mix",
        "sharing ratio",
        [
            Series("dedicated, same cost", beside, (1, 1), GREY, "dashed"),
            _of_points("95 % interval", ends, INTERVAL, "intervals"),
            *(
                _of_points(name, of[scale], colour)
                for scale, (name, colour) in MARKS.items()
                if of[scale]
            ),
        ],
        labels=[
            (place, _label(line, are_few))
            for place, (_, line) in enumerate(known.iterrows(), start=1)
        ],
    )


def _label(line: pd.Series, are_few: bool) -> str:
    """Return the label of a mix on the axis: its weights, or a short description.

    The label is the weights if they describe the whole mix and if `are_few` is true. Then there are
    so few tenants that the title of the axis names them.
    """
    label = short(line).removeprefix("mix ")
    return str(line["weights"]) if are_few and label == line["mix"] else label


def _of_points(name: str, points: Sequence[Point], colour: str, look: str = "points") -> Series:
    x, y, names = zip(*points, strict=True) if points else ((), (), ())
    return Series(name, x, y, colour, look, names)


def _with_open_end(line: pd.Series, unit: str) -> pd.Series:
    """Return the row `line` with a finite interval, so that the chart can draw the interval. If the
    interval has no upper bound, its end becomes OPEN_END times the estimate, and the label of the
    mix says "no upper bound"."""
    if line[f"ci_high_{unit}"] != math.inf:
        return line
    end = {f"ci_high_{unit}": OPEN_END * line[f"estimate_{unit}"]}
    return pd.Series({**line, **end, "mix": f"no upper bound: {line['mix']}"})


def _intervals(markers: Sequence[Marker]) -> Iterator[Series]:
    """Yield one series with the two ends of each interval. The two ends have the same name, so
    pictures.js joins them by a line."""
    low, high = ([m for m in markers if m.scale == end] for end in ENDS)
    pairs = [
        pair
        for pair in zip(low, high, strict=True)
        if all(map(math.isfinite, (*pair[0].rates_rps, *pair[1].rates_rps)))
    ]
    ends = [marker for pair in pairs for marker in pair]
    if ends:
        x, y = ([marker.rates_rps[i] for marker in ends] for i in range(2))
        names = [marker.mix for marker in ends]
        yield Series("95 % interval", x, y, INTERVAL, "intervals", names)


def _of_scales(markers: Sequence[Marker]) -> Iterator[Series]:
    """Yield one series for each kind of point in a frontier chart, for example all estimates."""
    for scale, (name, colour) in MARKS.items():
        mine = [m for m in markers if m.scale == scale and all(map(math.isfinite, m.rates_rps))]
        if mine:
            x, y = ([marker.rates_rps[i] for marker in mine] for i in range(2))
            look = "joined" if scale == "estimate" else "points"
            yield Series(name, x, y, colour, look, [marker.mix for marker in mine])


def of_costs(break_even: pd.DataFrame) -> Iterator[Chart]:
    """Yield one chart for each group of models, with the cost of servers over the demand, with and
    without sharing."""
    for number, (models, rows) in enumerate(break_even.groupby("models", sort=False)):
        options = rows.groupby(["server", "shared"], sort=False)
        series = [
            Series(
                f"{server}, {'sharing allowed' if shared else 'dedicated'}",
                list(part["total_rps"]),
                list(part["usd_per_hour"] * HOURS_PER_MONTH),
                COLOURS[i % len(COLOURS)],
                "steps",
            )
            for i, ((server, shared), part) in enumerate(options)
        ]
        yield Chart(
            f"cost-over-demand-{number + 1}",
            f"Cost over demand: {models}",
            "demand, all models (requests/s)",
            "USD a month",
            series,
        )


def _colour(verdict: str) -> str:
    return VERDICTS.get(verdict, VERDICTS["invalid"])


def _number(value: float) -> float | str | None:
    """Return the number with four significant digits. JSON has no infinity and no NaN, so infinity
    becomes the text "inf" or "-inf", and NaN becomes None. In the CSV file of a chart, infinity is
    the same text, and NaN is an empty field."""
    if math.isinf(value):
        return str(value)
    return None if math.isnan(value) else float(f"{value:.4g}")
