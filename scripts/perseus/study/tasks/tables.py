"""Define the task: make the tables of a study, with prices."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perseus.study.base import Part
from perseus.study.demand import Spot
from perseus.study.setting import Value


class Price(Part):
    """The price of a server in USD per hour, and its source.

    The server uses the share `share` of an instance with `vcpus` vCPUs, and pays the same share of
    its price. `vcpus` is None if the price list does not state the number. `currency` is the
    currency of the price list. `date` is the day on which the price was valid, or None if unknown.
    `doubts` has the reasons why the price may be wrong.
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
        """Return the price in USD per hour for "on_demand", "spot" or "committed"; None without a
        price."""
        return {
            "on_demand": self.on_demand_usd_per_hour,
            "spot": self.spot_usd_per_hour,
            "committed": self.committed_usd_per_hour,
        }[pricing]

    def in_proportion(self, cores: int, of: int) -> Price:
        """Return the price of a server with `cores` cores, if this price is for `of` cores and the
        price per core is the same."""
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
    """A setting of a grid, and the cells that Perseus measures with the setting.

    `values` has the value of each varied key; `description` has these values as text. The records
    of the cells have this `server`, `scenario` and `load_line`. `why_not` says why the setting was
    left out, and is empty otherwise.
    """

    values: dict[str, Value]
    description: str
    server: str
    scenario: str
    load_line: str
    why_not: str


class GridQuestion(Part):
    """A question of a grid: which setting is best for one tenant alone, or for one load line of all
    tenants.

    `grid`, `tenants` and `load_line` have the names in the configuration. `at_most` has the bounds,
    by the column of the table `grid` that a bound limits.
    """

    grid: str
    tenants: tuple[str, ...]
    load_line: str
    at_most: dict[str, float]
    settings: tuple[GridSetting, ...]


class DemandLevel(Part):
    """Level of the demand. `rps` has the requests/s for each model; a request has one image."""

    name: str
    rps: dict[str, float]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models with a demand above 0."""
        return tuple(name for name, rps in self.rps.items() if rps > 0)


class FleetDemand(Part):
    """The demand for a fleet at each level, and the conditions for the fleet.

    `servers` has the allowed servers, including variants of grids. Without `spot`, the fleet has no
    spot servers.
    """

    levels: tuple[DemandLevel, ...]
    headroom: float
    min_servers: int
    servers: tuple[str, ...]
    spot: Spot | None


class TablesTask(Part):
    """Settings of the tables of a study.

    `prices` and `other_prices` are by server. `seed` is the seed of the resampling. `usd_per_kwh`
    is None without a price of electricity.
    """

    study: str
    seed: int
    pricing: tuple[Literal["on_demand", "spot", "committed"], ...]
    prices: dict[str, Price]
    other_prices: dict[str, tuple[Price, ...]] = Field(default_factory=dict)
    usd_per_kwh: float | None = None
    grids: tuple[GridQuestion, ...] = ()
    demand: FleetDemand | None = None
