"""Figure: limit, p95, request size and CPU time if the client or the server converts the images."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from perseus.report.figure_data import COLOURS, HATCHES, FigureData
from perseus.report.plot_marks import furthest, interval
from perseus.report.style import (
    DARK,
    GREY,
    empty_figure,
    legend,
    name_rows,
    panels,
    remainder,
    row_names,
    rows_mm,
    verdict,
)
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Images become tensors either on the client (before the window) or on the server. The panels"
    " show, for each model: its peak, the p95 latency and the size of a request, and the CPU time"
    " of a request at the certified rates. Each line is a 95 % interval."
)

MAX_ROWS: Final = 20
LINE: Final = ["server", "scenario", "load_line", "preset", "tenant"]
COLUMNS: Final = [
    *LINE,
    "kind",
    "mix",
    "weights",
    "verdict",
    "model",
    "preprocessing",
    "limit_rps",
    "ci_low_rps",
    "ci_high_rps",
    "p95_ms",
    "p95_low_ms",
    "p95_high_ms",
    "request_bytes",
    "client_preprocess_ms",
    "client_cpu_ms",
    "server_cpu_ms",
]
CPU: Final = {
    "client_preprocess_ms": "client, converts images",
    "client_cpu_ms": "client, sends and receives",
    "server_cpu_ms": "server",
}
MARK: Final[dict[str, Any]] = {"fmt": "o", "color": COLOURS[0]}


def data(results: FigureData) -> pd.DataFrame:
    """Return one row for each tenant with preprocessing on each load line. The values of a row are
    means over the repeats."""
    rows = results.tenants[results.tenants["preprocessing"] != ""]
    if rows.empty:
        return pd.DataFrame(columns=COLUMNS)
    # The client measures its own conversion of images even if the server converts the images of the
    # windows. This time is no cost of such windows, so the figure leaves it out.
    by_client = rows["client_preprocess_ms"].where(rows["preprocessing"] == "client")
    rows = rows.assign(limit_rps=rows["estimate_rps"], client_preprocess_ms=by_client)
    texts = rows.select_dtypes(exclude="number").columns
    how = {name: "first" if name in texts else "mean" for name in COLUMNS if name not in LINE}
    return rows.groupby(LINE, sort=False).agg(how).reset_index()[COLUMNS]


def draw(rows: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw four panels with the same rows: limit, p95, bytes sent, and CPU time of client and
    server."""
    if rows.empty:
        return empty_figure(style, "no images were preprocessed")
    shown = rows.head(MAX_ROWS)
    names = row_names(_names(results, shown), style)
    figure, axes = panels(style, 4, 2, 16 + rows_mm(names, style))
    limit, latency, wire, cpu = axes
    _with_ends(limit, shown, "limit_rps", "ci_low_rps", "ci_high_rps")
    limit.set_xlabel("estimated limit (requests/s)")
    _with_ends(latency, shown, "p95_ms", "p95_low_ms", "p95_high_ms")
    latency.set_xlabel("p95, certified (ms)")
    wire.barh(range(len(shown)), shown["request_bytes"] / 1000, 0.6, color=GREY)
    wire.set_xlabel("request (kB)")
    left = pd.Series(0.0, index=shown.index)
    for part, colour, hatch in zip(CPU, COLOURS, HATCHES, strict=False):
        width = shown[part].fillna(0.0)
        look: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white"}
        cpu.barh(range(len(shown)), width, 0.6, left=left, **look)
        left = left + width
    cpu.set_xlabel("CPU time of a request (ms)")
    for i, panel in enumerate(axes):
        panel.set_xlim(left=0)
        name_rows(panel, [""] * len(shown) if i % 2 else names)
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=CPU[part])
        for part, colour, hatch in zip(CPU, COLOURS, HATCHES, strict=False)
    ]
    legend(figure, handles, 3)
    remainder(figure, len(shown), len(rows), "tenants", "preprocessing.csv")
    return figure


def _names(results: FigureData, rows: pd.DataFrame) -> list[str]:
    """Return the labels of the tenants. If the study has several servers, a label names the server.
    If a tenant shares a server, its label names the load line."""
    several = rows["server"].nunique() > 1
    return [
        f"{row['server'] + ': ' if several else ''}{row['tenant']} ({row['preprocessing']})"
        + ("" if row["kind"] == "dedicated" else f", {results.called(row)}")
        for _, row in rows.iterrows()
    ]


def _with_ends(panel: Axes, rows: pd.DataFrame, *names: str) -> None:
    """Draw the value of each row with its interval, or the verdict if there is no value. `names`
    has three columns: the value, and the low and the high end of its interval."""
    limit = furthest(rows[[names[0]]])
    for y, (_, row) in enumerate(rows.iterrows()):
        if pd.isna(row[names[0]]):
            panel.text(0, y, f" {verdict(row)}", va="center", fontsize="small", color=DARK)
        else:
            value, low, high = (row[name] for name in names)
            interval(panel, y, (value, low, high), limit, **MARK)
