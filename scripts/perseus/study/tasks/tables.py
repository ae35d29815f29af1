"""Task: make the tables of a study, with prices."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perseus.study.base import Part
from perseus.study.demand import Spot
from perseus.study.setting import Value


class Price(Part):
    """The price of a server in USD per hour, and its source.

    The server has this `share` of an instance with `vcpus` and of its accelerators, and pays
    that share; `vcpus` is None if the list does not say. `currency` is that of the list, `date`
    the day on which the price was valid, None if unknown. `doubts` say in words why a price may
    be wrong.
    """

    instance: str
    region: str
    on_demand_usd_per_hour: float | None
    spot_usd_per_hour: float | None
    source: str
    committed_usd_per_hour: float | None = None
    zone: str = ""
    accelerator: str = ""
    vcpus: float | None = None
    share: float = 1.0
    currency: str = "USD"
    date: str | None = None
    doubts: tuple[str, ...] = ()

    def usd_per_hour(self, pricing: str) -> float | None:
        """Return the price by "on_demand", "spot" or "committed"; None if there is none."""
        return {
            "on_demand": self.on_demand_usd_per_hour,
            "spot": self.spot_usd_per_hour,
            "committed": self.committed_usd_per_hour,
        }[pricing]

    def in_proportion(self, cores: int, of: int) -> Price:
        """Return the price of a machine with another number of cores, at the same price per
        core."""
        if cores == of:
            return self
        keys = [f"{pricing}_usd_per_hour" for pricing in ("on_demand", "spot", "committed")]
        prices = {key: getattr(self, key) for key in keys}
        return self.model_copy(
            update={
                "share": self.share * cores / of,
                **{key: None if usd is None else usd * cores / of for key, usd in prices.items()},
                "source": f"{self.source}, in proportion for {cores} in place of {of} cores",
            }
        )


class GridSetting(Part):
    """A setting of a grid, and the load line that answers a question with it.

    `values` are by key, and `description` is their text. `server`, `scenario` and `load_line` are
    those of the records of its cells. `why_not` says why the setting was left out, else it is ''.
    """

    values: dict[str, Value]
    description: str
    server: str
    scenario: str
    load_line: str
    why_not: str


class GridQuestion(Part):
    """The settings of a grid for one tenant alone, or for one shared load line.

    `grid`, `tenants` and `load_line` are named as in the configuration; `at_most` are bounds, by
    the column of the table `grid` that they bound.
    """

    grid: str
    tenants: tuple[str, ...]
    load_line: str
    at_most: dict[str, float]
    settings: tuple[GridSetting, ...]


class DemandLevel(Part):
    """Requests/s by model, of one image each."""

    name: str
    rps: dict[str, float]

    @property
    def models(self) -> tuple[str, ...]:
        """Models with a demand above 0."""
        return tuple(name for name, rps in self.rps.items() if rps > 0)


class FleetDemand(Part):
    """The demand of a fleet at each level, and its conditions: `servers` are the allowed ones,
    with variants of grids; without `spot` there are no spot servers."""

    levels: tuple[DemandLevel, ...]
    headroom: float
    min_servers: int
    servers: tuple[str, ...]
    spot: Spot | None


class TablesTask(Part):
    """`prices` and `other_prices` are by server; `seed` is that of the resampling; `usd_per_kwh`
    is None without a price of electricity."""

    study: str
    seed: int
    pricing: tuple[Literal["on_demand", "spot", "committed"], ...]
    prices: dict[str, Price]
    other_prices: dict[str, tuple[Price, ...]] = Field(default_factory=dict)
    usd_per_kwh: float | None = None
    grids: tuple[GridQuestion, ...] = ()
    demand: FleetDemand | None = None
