"""The task of making the tables of a study: prices enter here."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from perseus.study.base import Part
from perseus.study.demand import Spot
from perseus.study.setting import Value


class Price(Part):
    """What a server costs in USD per hour, and where that stands.

    It has a `share` of the instance with so many `vcpus`, and of the accelerators that are bought
    with it, and costs as large a share of them; `vcpus` is None where the list does not say.
    `currency` is that in which it was stated, `date` the day on which it was valid, None where that
    is not known. `doubts` say in words why a price may be wrong.
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
        """By "on_demand", "spot" or "committed"; None where there is no such price."""
        return {
            "on_demand": self.on_demand_usd_per_hour,
            "spot": self.spot_usd_per_hour,
            "committed": self.committed_usd_per_hour,
        }[pricing]

    def in_proportion(self, cores: int, of: int) -> Price:
        """That of a machine with other cores, if they cost the same each."""
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

    `values` are by key, `words` the same for people. `server`, `scenario` and `load_line` are as
    the records of its cells have them; `why_not` says why it was left out, and is empty where it
    was not.
    """

    values: dict[str, Value]
    words: str
    server: str
    scenario: str
    load_line: str
    why_not: str


class GridQuestion(Part):
    """Which setting of a grid is best for one tenant alone, or for one shared load line.

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
        """Those that are asked for at all."""
        return tuple(name for name, rps in self.rps.items() if rps > 0)


class FleetDemand(Part):
    """What a fleet must carry at each level, and what it may be made of: `servers` by name, with
    variants of grids; without `spot`, none at the spot price."""

    levels: tuple[DemandLevel, ...]
    headroom: float
    min_servers: int
    servers: tuple[str, ...]
    spot: Spot | None


class TablesTask(Part):
    """`prices` and `other_prices` are by the server's name; `seed` is that of the resampling;
    `usd_per_kwh` is None where electricity is not priced."""

    study: str
    seed: int
    pricing: tuple[Literal["on_demand", "spot", "committed"], ...]
    prices: dict[str, Price]
    other_prices: dict[str, tuple[Price, ...]] = Field(default_factory=dict)
    usd_per_kwh: float | None = None
    grids: tuple[GridQuestion, ...] = ()
    demand: FleetDemand | None = None
