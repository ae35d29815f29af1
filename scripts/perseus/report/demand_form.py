"""The form in which readers of the page state a demand of their own, and the data that its fleets
are planned by in the browser."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pandas as pd

from perseus.report.answers.answer import Tables
from perseus.report.headline import top_fleets
from perseus.results.fleets.plans import SHARING
from perseus.study.demand import Demand

MOST_SLIDERS: Final = 4
"""Models with a slider each; more are rows of a table."""
MOST_DRAWN: Final = 400
"""Operating points x models whose draws are on the page: beyond that, plans have no certainty."""
SLIDER_SERVERS: Final = 4
"""Dedicated servers that the highest demand on a slider fills."""

POINT: Final = ["scenario", "load_line", "preset"]


@dataclass(frozen=True)
class DemandForm:
    """`points` are rows of operating_points, `draws` of operating_point_draws, and `dedicated` the
    load lines of one model alone. The settings at first are those of the study's demand, else a
    third of what a dedicated server carries."""

    points: pd.DataFrame
    draws: pd.DataFrame
    dedicated: Set[Hashable]
    rps: Mapping[str, float]
    headroom: float = 0.0
    min_servers: int = 1

    @property
    def models(self) -> list[str]:
        return sorted(self.points["model"].unique())

    @property
    def has_sliders(self) -> bool:
        return len(self.models) <= MOST_SLIDERS

    @cached_property
    def most_rps(self) -> dict[str, float]:
        """By model, the end of its slider."""
        most = self.points.groupby("model")["lower_rps"].max()
        return {
            model: _round(max(SLIDER_SERVERS * most[model], 2 * self.rps[model]))
            for model in self.models
        }

    @property
    def usd_per_month(self) -> dict[str, float | None]:
        """By server, of one."""
        first = self.points.groupby("server")["usd_per_month"].first()
        return {str(name): None if pd.isna(usd) else float(usd) for name, usd in first.items()}

    @property
    def json(self) -> str:
        """What demand.js reads; safe inside a script element."""
        data = {"models": self.models, "points": list(self._points())}
        return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")

    def _points(self) -> Iterator[dict[str, Any]]:
        draws = dict(list(self.draws.groupby([*POINT, "model"], sort=False)))
        is_drawn = len(self.points) <= MOST_DRAWN
        for key, rows in self.points.groupby(POINT, sort=False):
            yield {
                "server": rows["server"].iloc[0],
                "mix": rows["mix"].iloc[0],
                "shared": key not in self.dedicated,
                "lower": dict(zip(rows["model"], rows["lower_rps"], strict=True)),
                "draws": {
                    model: [float(f"{rps:.5g}") for rps in draws[*key, model]["rps"]]
                    for model in rows["model"]
                    if is_drawn and (*key, model) in draws
                },
            }


def demand_form(tables: Tables, demand: Demand | None = None) -> DemandForm | None:
    """None where no server was measured to carry anything."""
    points = tables["operating_points"]
    if points.empty:
        return None
    alone = tables["peaks"][tables["peaks"]["kind"] == "dedicated"]
    return DemandForm(
        points=points,
        draws=tables["operating_point_draws"],
        dedicated=set(alone[POINT].itertuples(index=False, name=None)),
        rps=_of_study(tables) or _thirds(points),
        headroom=demand.headroom if demand else 0.0,
        min_servers=demand.min_servers if demand else 1,
    )


def _of_study(tables: Tables) -> dict[str, float]:
    """The highest level of the study's demand."""
    if not len(tables["fleets"]):
        return {}
    level = top_fleets(tables["fleets"])[SHARING]["level"]
    models = tables["fleet_models"]
    mine = models[(models["level"] == level) & (models["strategy"] == SHARING)]
    asked = dict(zip(mine["model"], mine["demand_rps"], strict=True))
    everyone = tables["operating_points"]["model"]
    return {model: float(asked.get(model, 0.0)) for model in everyone}


def _thirds(points: pd.DataFrame) -> dict[str, float]:
    return {
        str(m): _round(rps / 3) for m, rps in points.groupby("model")["lower_rps"].max().items()
    }


def _round(rps: float) -> float:
    """To two digits."""
    return float(f"{rps:.2g}")
