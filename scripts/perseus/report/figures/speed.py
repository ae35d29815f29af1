"""Figure: throughput in saturation probes during a study. The figure shows changes of the speed of
the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from perseus.report.figure_data import FigureData
from perseus.report.style import GREY, empty_figure, legend, panels, remainder
from perseus.results.records import PeakRecord, Row
from perseus.results.windows import of_speed
from perseus.study.tasks.figure import FigureTask

CAPTION = (
    "Throughput of each model alone in saturation probes (short closed loops), relative to its mean"
    " over all probes on the same server. If several models share the server, a mark is the median"
    " of several successive probes. A line joins the marks of one run. If the throughput of all"
    " models changes at the same time, the speed of the host changed."
)

MAX_SERVERS = 6
MAX_VECTORS = 5000
"""If a server has more probes than this number, the figure draws the marks as a bitmap in place of
vectors, so that the file stays small."""

COLUMNS = ["server", "cell", "tenant", "unix_ns", "speed_rps", "minutes"]


def data(results: FigureData) -> pd.DataFrame:
    """Return each measured saturation throughput of a tenant in a cell, one per row."""
    return pd.DataFrame(_looks(results.cells), columns=COLUMNS)


def draw(looks: pd.DataFrame, results: FigureData, style: FigureTask) -> Figure:
    """Draw one panel per server. A mark is a measured saturation throughput of a tenant, relative
    to the mean of the tenant on this server."""
    if looks.empty:
        return empty_figure(style, "no saturation probe in this study")
    every = list(dict.fromkeys(looks["server"]))
    servers = every[:MAX_SERVERS]
    figure, axes = panels(style, len(servers), 1, 55, sharex=True)
    for panel, server in zip(axes, servers, strict=True):
        of_server = looks[looks["server"] == server]
        panel.axhline(0, color=GREY, linewidth=1, zorder=1)
        logs = np.log(of_server["speed_rps"])
        means = logs.groupby(of_server["tenant"]).mean()
        for (tenant, _), cell in of_server.groupby(["tenant", "cell"], sort=False):
            off = 100 * (cell["speed_rps"] / np.exp(means[tenant]) - 1)
            panel.plot(
                cell["minutes"],
                off,
                **results.look(tenant),
                markersize=3,
                linewidth=1,
                rasterized=len(of_server) > MAX_VECTORS,
            )
        panel.set_title(results.one_server(server, style.pricing), loc="left")
        panel.set_ylabel("speed, relative to its mean (%)")
    axes[-1].set_xlabel("time since the first probe (min)")
    named = dict.fromkeys(looks["tenant"])
    handles = [Line2D([], [], **results.look(name), label=name) for name in named]
    legend(figure, handles, min(4, len(handles)))
    remainder(figure, len(servers), len(every), "servers", "speed.csv")
    return figure


def _looks(cells: Sequence[Path]) -> list[Row]:
    """Return each measured saturation throughput of a tenant in a cell, one per row, in the order
    of time. The column `minutes` has the minutes since the first of these measurements."""
    found: list[Row] = []
    records = [PeakRecord.read(folder) for folder in cells]
    windows = of_speed(records)
    for record in records:
        offset_ns = record.started.unix_ns - record.started.monotonic_ns
        for tenant, speeds_rps in record.speeds_rps.items():
            starts_ns = _starts_ns(windows[record.folder], tenant)
            found += [
                {
                    "server": record.task.server.name,
                    "cell": record.folder.name,
                    "tenant": tenant,
                    "unix_ns": start_ns + offset_ns,
                    "speed_rps": speed_rps,
                }
                for start_ns, speed_rps in zip(starts_ns, speeds_rps, strict=False)
            ]
    found.sort(key=lambda look: look["unix_ns"])
    first_ns = found[0]["unix_ns"] if found else 0
    return [look | {"minutes": (look["unix_ns"] - first_ns) / 60e9} for look in found]


def _starts_ns(probes: Sequence[Row], tenant: str) -> list[int]:
    """Return the start times in ns of all measurements of the saturation throughput of `tenant`.

    A search measures the saturation throughput three or four times. With several tenants, a
    measurement has several consecutive windows. It starts with the first window in which only
    `tenant` has load. A fourth measurement directly follows the third, so the function cannot
    separate their windows. In place of the start of the fourth measurement, the result has the
    start of the last window of `tenant` alone.
    """
    loaded = Counter(row["window"] for row in probes if row["requests"])
    sequence = {window: window - i for i, window in enumerate(sorted(loaded))}
    alone = [
        row
        for row in probes
        if row["tenant"] == tenant and row["requests"] and loaded[row["window"]] == 1
    ]
    first = dict[int, int]()
    for row in alone:
        first.setdefault(sequence[row["window"]], row["start_ns"])
    return [*first.values(), *(row["start_ns"] for row in alone[-1:])]
