"""Define the task of the job that makes the tables of a study."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perseus.study.base import Part
from perseus.study.demand import Spot
from perseus.study.setting import Value


class Price(Part):
    """The price of a server in USD per hour, and where the price comes from.

    The server pays the share `share` (0 to 1) of the price of an instance with `vcpus` vCPUs. If
    the price list does not state the number of vCPUs, `vcpus` is None. `currency` is the currency
    of the price list. `date` is the day on which the price was valid, or None if unknown. `doubts`
    contains the reasons why the price may be wrong.
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
        """Return the price in USD per hour for a `pricing` ("on_demand", "spot" or "committed"), or
        None if unknown."""
        return {
            "on_demand": self.on_demand_usd_per_hour,
            "spot": self.spot_usd_per_hour,
            "committed": self.committed_usd_per_hour,
        }[pricing]

    def in_proportion(self, cores: int, of: int) -> Price:
        """Return the price of a server with `cores` cores: this price, the price of a server with
        `of` cores, in proportion to the number of cores."""
        if cores == of:
            return self
        keys = [f"{pricing}_usd_per_hour" for pricing in ("on_demand", "spot", "committed")]
        prices = {key: getattr(self, key) for key in keys}
        return self.model_copy(
            update={
                "share": self.share * cores / of,
                **{key: None if usd is None else usd * cores / of for key, usd in prices.items()},
                "source": f"{self.source}, scaled in proportion from {of} to {cores} cores",
            }
        )


class GridSetting(Part):
    """A setting of a grid, and the names of its results.

    `values` contains the value of each key that the grid varies. `description` states these values
    as text. `server`, `scenario` and `load_line` are the names in the records of the cells that
    Perseus measures with this setting. `why_not` says why Perseus does not measure the setting, and
    is empty for a measured setting.
    """

    values: dict[str, Value]
    description: str
    server: str
    scenario: str
    load_line: str
    why_not: str


class GridQuestion(Part):
    """A question that a grid answers: which setting is best for one tenant alone on a server, or
    for all tenants on one load line.

    `grid` is the name of the scenario with the grid. `tenants` and `load_line` are names without
    the suffixes for settings. `at_most` contains the upper limits that the best setting must not
    exceed. Each key of `at_most` is a column of the table `grid`.
    """

    grid: str
    tenants: tuple[str, ...]
    load_line: str
    at_most: dict[str, float]
    settings: tuple[GridSetting, ...]


class DemandLevel(Part):
    """One level of the demand, such as "peak". `rps` contains the requests/s for each model; each
    request has one image."""

    name: str
    rps: dict[str, float]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models with a rate above 0 at this level."""
        return tuple(name for name, rps in self.rps.items() if rps > 0)


class FleetDemand(Part):
    """The demand at each level, and the conditions for the fleet that carries the demand.

    `servers` contains the names of the servers that the fleet may use, including their variants in
    grids.
    """

    levels: tuple[DemandLevel, ...]
    headroom: float
    min_servers: int
    servers: tuple[str, ...]
    spot: Spot | None


class TablesTask(Part):
    """Settings of the tables of a study.

    `prices` contains the price of each server with the key `price`. `other_prices` contains each
    server's prices from its key `other_prices`. `seed` is the random seed with which the job
    resamples the results. `usd_per_kwh` is the price of electricity, or None.
    """

    study: str
    seed: int
    pricing: tuple[Literal["on_demand", "spot", "committed"], ...]
    prices: dict[str, Price]
    other_prices: dict[str, tuple[Price, ...]] = Field(default_factory=dict)
    usd_per_kwh: float | None = None
    grids: tuple[GridQuestion, ...] = ()
    demand: FleetDemand | None = None
