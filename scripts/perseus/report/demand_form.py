"""Make the form in which the reader of the report enters a demand, and the data from which the
browser plans fleets."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from perseus.report.conclusions.conclusion import Tables
from perseus.report.headline import top_fleets
from perseus.report.shown_tables import machine_text
from perseus.results.fleets.plans import HOURS_PER_MONTH, SHARING
from perseus.study.demand import Demand, Spot
from perseus.study.setting import configured

MAX_SLIDERS: Final = 4
"""If there are more models than this number, the form has only fields for numbers, and no
sliders."""
MAX_DRAWN: Final = 400
"""If the table operating_points has more rows than this number, the page contains no draws (random
samples of the capacities), so that the page stays small. The form then says why it states no
probabilities."""
SLIDER_SERVERS: Final = 4
"""The largest demand on the slider of a model is the load of this many dedicated servers."""

USUAL_REVOCATIONS: Final = 0.05
"""If the study does not state how often spot servers are revoked, the form writes this number of
revocations per hour into the configuration. Plans do not depend on this number."""

POINT: Final = ["scenario", "load_line", "preset"]


@dataclass(frozen=True)
class DemandForm:
    """Data of the form in which the reader of the report enters a demand.

    `points` is the table operating_points, and `draws` is the table operating_point_draws. The
    values in the columns POINT identify a load line. `dedicated` has these values for each load
    line on a dedicated server. `open_above` has these values for each load line whose capacity has
    no upper limit. `rps` is the initial demand of each model in requests/s. This demand is the
    demand of the study or, if the study has no demand, one third of the estimated capacity of a
    dedicated server. `machines` maps each server with costs to the name of the machine whose price
    the plans use. `stated` is the demand in the configuration.
    """

    points: pd.DataFrame
    draws: pd.DataFrame
    dedicated: Set[Hashable]
    open_above: Set[Hashable]
    rps: Mapping[str, float]
    machines: Mapping[str, str]
    stated: Demand | None = None

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(self.points["model"]))

    @property
    def headroom(self) -> float:
        return self.stated.headroom if self.stated else 0.0

    @property
    def min_servers(self) -> int:
        return self.stated.min_servers if self.stated else 1

    @property
    def spot(self) -> Spot | None:
        return self.stated.spot if self.stated else None

    @property
    def spot_share(self) -> float:
        return self.spot.largest_share if self.spot else 0.0

    @property
    def has_sliders(self) -> bool:
        return len(self.models) <= MAX_SLIDERS

    @cached_property
    def most_rps(self) -> dict[str, float]:
        """Largest demand on the slider of each model, in requests/s."""
        most = self.points.groupby("model")["lower_rps"].max()
        return {
            model: _round(max(SLIDER_SERVERS * most[model], 2 * self.rps[model]))
            for model in self.models
        }

    @property
    def usd_per_month(self) -> dict[str, float | None]:
        """Price of one server in USD per month, by server. The price is None if it is unknown, or
        if the demand excludes the server."""
        return self._prices("usd_per_month")

    @property
    def spot_usd_per_month(self) -> dict[str, float | None]:
        """Spot price of one server in USD per month, by server. The price is None if it is unknown,
        or if the demand excludes the server."""
        return self._prices("spot_usd_per_month")

    def _prices(self, column: str) -> dict[str, float | None]:
        first = self.points.groupby("server")[column].first()
        return {
            str(name): float(usd) if pd.notna(usd) and _is_bought(str(name), self.stated) else None
            for name, usd in first.items()
        }

    @property
    def _cores(self) -> dict[str, int]:
        """Number of cores of each CPU server."""
        first = self.points[self.points["device"] == "cpu"].groupby("server")["cores"].first()
        return {str(name): int(cores) for name, cores in first.items()}

    @property
    def json(self) -> str:
        """Data of the form for the script demand.js: JSON, escaped for a script element."""
        rate = self.spot.revocations_per_hour if self.spot else USUAL_REVOCATIONS
        data = {
            "hours_per_month": HOURS_PER_MONTH,
            "revocations_per_hour": rate,
            "cores": self._cores,
            "why_no_draws": self._why_no_draws,
            "points": list(self._points()),
        }
        return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")

    @property
    def _is_drawn(self) -> bool:
        return len(self.points) <= MAX_DRAWN

    @property
    def _why_no_draws(self) -> str:
        """Reason why some capacities have no draws, so that the page states no probabilities."""
        if self._is_drawn:
            return "the study has no random samples of a capacity"
        return (
            f"the study has {len(self.points)} capacities, and the page contains random samples"
            f" only for up to {MAX_DRAWN} capacities"
        )

    def _points(self) -> Iterator[dict[str, Any]]:
        draws = dict(list(self.draws.groupby([*POINT, "model"], sort=False)))
        for key, rows in self.points.groupby(POINT, sort=False):
            yield {
                "server": rows["server"].iloc[0],
                "mix": rows["mix"].iloc[0],
                "shared": key not in self.dedicated,
                "open": key in self.open_above,
                "lower": dict(zip(rows["model"], rows["lower_rps"], strict=True)),
                "estimate": _rounded(rows, "estimate_rps"),
                "certified": _rounded(rows, "certified_rps"),
                "draws": {
                    model: [float(f"{rps:.5g}") for rps in draws[*key, model]["rps"]]
                    for model in rows["model"]
                    if self._is_drawn and (*key, model) in draws
                },
            }


def demand_form(tables: Tables, demand: Demand | None = None) -> DemandForm | None:
    """Return the data of the form; None if there are no operating points."""
    points = tables["operating_points"]
    if points.empty:
        return None
    peaks = tables["peaks"]
    dedicated = _keys(peaks[peaks["kind"] == "dedicated"])
    return DemandForm(
        points=points,
        draws=tables["operating_point_draws"],
        dedicated=dedicated,
        open_above=_keys(peaks[np.isinf(peaks["ci_high_rps"])]),
        rps=_of_study(tables) or _thirds(points, dedicated),
        machines=_machines(tables["costs"]),
        stated=demand,
    )


def _keys(lines: pd.DataFrame) -> set[Hashable]:
    return set(lines[POINT].itertuples(index=False, name=None))


def _of_study(tables: Tables) -> dict[str, float]:
    """Return the requests/s of each model at the highest level of the configured demand.

    The result is empty if the study has no demand, or if no fleet carries the demand.
    """
    if not len(tables["fleets"]):
        return {}
    level = top_fleets(tables["fleets"])[SHARING]["level"]
    models = tables["fleet_models"]
    mine = models[(models["level"] == level) & (models["strategy"] == SHARING)]
    asked = dict(zip(mine["model"], mine["demand_rps"], strict=True))
    everyone = tables["operating_points"]["model"] if asked else ()
    return {model: float(asked.get(model, 0.0)) for model in everyone}


def _is_bought(server: str, stated: Demand | None) -> bool:
    """Return whether the demand permits a server."""
    servers = stated.servers if stated else None
    return servers is None or configured(server) in servers


def _machines(costs: pd.DataFrame) -> dict[str, str]:
    """Return, by server, the name of the machine to which the price of the server belongs."""
    return {str(row["server"]): machine_text(row) for _, row in costs.iterrows()}


def _thirds(points: pd.DataFrame, dedicated: Set[Hashable]) -> dict[str, float]:
    """Return one third of the estimated capacity for each model, in requests/s.

    If `points` has dedicated servers of a model, the capacity is the estimate on the first of these
    servers. For a model without an estimate on a dedicated server, the capacity is the largest
    estimate on a shared server.
    """
    keys = points[POINT].itertuples(index=False, name=None)
    alone = points[[key in dedicated for key in keys]]
    most = points.groupby("model")["estimate_rps"].max()
    first = alone.groupby("model")["estimate_rps"].first()
    return {str(model): float(f"{rps / 3:.3g}") for model, rps in first.combine_first(most).items()}


def _rounded(rows: pd.DataFrame, column: str) -> dict[str, float]:
    """Return the known rates of a column in requests/s, by model, with five significant digits."""
    known = rows.dropna(subset=column)
    return {of: float(f"{rps:.5g}") for of, rps in zip(known["model"], known[column], strict=True)}


def _round(rps: float) -> float:
    """Return a number rounded to two significant digits."""
    return float(f"{rps:.2g}")
