"""Rows of a benchmark: the value of Perseus, the value of a peer (another tool), the goal, and
whether the goal is met."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from perseus.host.files import whole

COLUMNS = (
    "benchmark",
    "case",
    "metric",
    "ours",
    "peer",
    "peer_name",
    "ratio",
    "goal",
    "met",
)


@dataclass(frozen=True)
class Goal:
    """A bound on the value `ours` or on the ratio ours / peer. If the goal has a `condition` in
    words, this condition must also hold."""

    relation: Literal[">=", "<=", "<"]
    bound: float
    of: Literal["ratio", "ours"] = "ratio"
    condition: str = ""
    holds: bool = True

    @property
    def text(self) -> str:
        subject = "ours " if self.of == "ours" else ""
        condition = f" with {self.condition}" if self.condition else ""
        return f"{subject}{self.relation} {self.bound:g}{condition}"

    def met(self, value: float) -> bool:
        within = {
            ">=": value >= self.bound,
            "<=": value <= self.bound,
            "<": value < self.bound,
        }[self.relation]
        return within and self.holds  # NaN meets nothing


@dataclass(frozen=True)
class Row:
    """One row of a table. NaN means that a value does not exist, and misses every goal."""

    benchmark: str
    case: str
    metric: str
    ours: float
    peer: float = math.nan
    peer_name: str = ""
    goal: Goal | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.peer if self.peer else math.nan

    def cells(self) -> tuple[str, ...]:
        goal, met = "", ""
        if self.goal:
            value = self.ours if self.goal.of == "ours" else self.ratio
            goal, met = self.goal.text, str(self.goal.met(value)).lower()
        figures = [_figure(x) for x in (self.ours, self.peer)]
        named = (self.benchmark, self.case, self.metric)
        return (*named, *figures, self.peer_name, _figure(self.ratio), goal, met)


def _figure(value: float) -> str:
    """Return a number with four significant digits and no exponent, or an empty text for NaN or
    infinity."""
    if not math.isfinite(value):
        return ""
    return np.format_float_positional(value, precision=4, unique=False, fractional=False, trim="-")


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    with whole(path) as partial, partial.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(row.cells() for row in rows)


def read_cells(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
