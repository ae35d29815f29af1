"""Define the data that figures read, and the style of each tenant in all figures.

Each tenant has a colour, a hatch, a marker and a dash pattern. The colours are the palette of Okabe
and Ito (jfly.uni-koeln.de/color). Colour-blind readers can distinguish these colours. There are six
colours, so the seventh tenant has the colour of the first tenant. The hatch, the marker and the
dash pattern distinguish tenants with the same colour. In black and white, they distinguish up to
twelve tenants.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from matplotlib.lines import Line2D

from perseus.report.links import on_line
from perseus.report.numbers import significant
from perseus.report.style import short
from perseus.results.fleets.plans import HOURS_PER_MONTH
from perseus.results.scenario_names import with_scenario

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
HATCHES = ("", "///", "xxx", "\\\\\\", "++", "...", "|||", "---", "ooo", "**", "//|", "\\\\-")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "d", "p")
Dashes = Literal["-"] | tuple[float, tuple[float, ...]]
DASHES: tuple[Dashes, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.5, 1)),
    (0, (6, 1.5, 1.5, 1.5)),
    (0, (2.5, 2.5)),
    (0, (8, 1.5, 1, 1.5, 1, 1.5)),
    (0, (10, 2)),
    (0, (1, 2.5)),
    (0, (3, 1.5, 1, 1.5)),
    (0, (10, 2, 4, 2)),
    (0, (5, 4)),
    (0, (4, 1, 1, 1, 1, 1, 1, 1)),
)
REPEAT = r"\.r[0-9]+$"  # end of the name of a cell
LONGEST_MIX = 100
"""On an axis, the label of a load line has at most this many characters."""


def per_month(usd_per_hour: float) -> str:
    """Return a price per month as text, for example $34.7/month."""
    return f"${significant(HOURS_PER_MONTH * usd_per_hour)}/month"


def of_line(frame: pd.DataFrame, line: pd.Series) -> pd.DataFrame:
    """Return the rows of `frame` that have the same load line as the row `line`."""
    return frame[on_line(frame, line)]


@dataclass(frozen=True)
class FigureData:
    """Tables of a study by name, and the folders of the raw results that a figure reads."""

    tables: Mapping[str, pd.DataFrame]
    cells: tuple[Path, ...] = ()

    @property
    def peaks(self) -> pd.DataFrame:
        return self.tables["peaks"]

    @property
    def tenants(self) -> pd.DataFrame:
        return self.tables["tenants"]

    def tenants_of(self, line: pd.Series) -> pd.DataFrame:
        """Return the rows of the table tenants for a load line, given its row of the table
        peaks."""
        return of_line(self.tenants, line)

    def alone(self, line: pd.Series, tenant: str) -> pd.Series:
        """Return the row of the table peaks for the dedicated peak of a tenant, on the same server
        and with the same preset as the load line `line`."""
        of = self.tenants
        like = (of["server"] == line["server"]) & (of["preset"] == line["preset"])
        mine = of[like & (of["kind"] == "dedicated") & (of["tenant"] == tenant)].iloc[0]
        return of_line(self.peaks, mine).iloc[0]

    def called(self, line: pd.Series) -> str:
        """Return a label of a load line that is as short as possible.

        If several groups of tenants share servers, the label also names the tenants. If the names
        of the tenants are too long, the label names the scenario in place of the tenants.
        """
        if line["kind"] == "dedicated" or not self._has_several_groups:
            return short(line)
        mix = str(line["mix"])
        if len(mix) <= LONGEST_MIX:
            return mix
        return with_scenario(short(line), line["server"], line["scenario"])

    def mix_title(self, row: pd.Series) -> str:
        """Return the description of the mix of a row, or a short label if the description is long.

        `row` has the columns `mix` and `load_line`.
        """
        mix = str(row["mix"])
        if len(mix) <= LONGEST_MIX:
            return mix
        same = (self.peaks["mix"] == mix) & (self.peaks["load_line"] == row["load_line"])
        return self.called(self.peaks[same].iloc[0])

    def one_server(self, server: str, pricing: str) -> str:
        """Describe one server, for example "1 server of type cpu1, $34.7/month". If the price is
        unknown, the text has no price."""
        costs = self.tables["costs"]
        of_server = costs[(costs["server"] == server) & (costs["pricing"] == pricing)]
        usd_per_hour = of_server["usd_per_hour"].dropna()
        price = f", {per_month(usd_per_hour.iloc[0])}" if len(usd_per_hour) else ""
        return f"1 server of type {server}{price}"

    def where(self, row: pd.Series, among: pd.DataFrame, pricing: str) -> str:
        """Return the title for a row of the table `among`, for example "repeat 2: 1 server of type
        cpu1, $34.7/month".

        If `among` has several scenarios on this server, the title begins with the scenario. It also
        names the experiment if the scenario has several experiments, and the repeat if the
        experiment has several repeats. Without a column `cell` in `among`, the title has no
        experiment and no repeat.
        """
        of = among[among["server"] == row["server"]]
        parts = []
        if of["scenario"].nunique() > 1:
            parts.append(row["scenario"].removeprefix(f"{row['server']}."))
        if "cell" in of:
            of = of[of["scenario"] == row["scenario"]]
            experiments = of["cell"].str.replace(REPEAT, "", regex=True)
            experiment = re.sub(REPEAT, "", row["cell"])
            if experiments.nunique() > 1:
                parts.append(experiment.removeprefix(f"{row['scenario']}."))
            if of[experiments == experiment]["repeat"].nunique() > 1:
                parts.append(f"repeat {row['repeat']}")
        which = f"{', '.join(parts)}: " if parts else ""
        return which + self.one_server(row["server"], pricing)

    @property
    def _has_several_groups(self) -> bool:
        """True if several groups of tenants, or several scenarios, share servers."""
        shared = self.peaks[self.peaks["kind"] != "dedicated"]
        scenarios = shared.groupby("server")["scenario"].nunique()
        return bool(shared["models"].nunique() > 1 or scenarios.gt(1).any())

    def names_of(self, lines: pd.DataFrame) -> list[str]:
        """Return the labels of load lines, one for each row."""
        return [self.called(line) for _, line in lines.iterrows()]

    @cached_property
    def names(self) -> list[str]:
        """Names of all tenants; the index of a tenant decides its colour in every figure."""
        return list(self.tenants["tenant"].unique())

    def colour(self, tenant: str) -> str:
        return COLOURS[self.names.index(tenant) % len(COLOURS)]

    def hatch(self, tenant: str) -> str:
        return HATCHES[self._pattern(tenant)]

    def marker(self, tenant: str) -> str:
        return MARKERS[self._pattern(tenant)]

    def dashes(self, tenant: str) -> Dashes:
        return DASHES[self._pattern(tenant)]

    def _pattern(self, tenant: str) -> int:
        """Return the index of the tenant's hatch, marker and dash pattern. If more than twelve
        tenants exist, several tenants have the same index, but different colours."""
        place = self.names.index(tenant)
        return (place + place // len(MARKERS)) % len(MARKERS)

    def look(self, tenant: str) -> dict[str, Any]:
        """Return the style of the tenant's marks."""
        return {"color": self.colour(tenant), "marker": self.marker(tenant)}

    def handles(self, among: pd.Series) -> list[Line2D]:
        """Return legend handles for the tenants whose names `among` contains."""
        there = set(among)
        return [Line2D([], [], **self.look(n), label=n) for n in self.names if n in there]
