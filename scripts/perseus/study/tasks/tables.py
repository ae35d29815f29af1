"""The task of making the tables of a study: prices enter here."""

from __future__ import annotations

from typing import Literal

from perseus.study.base import Part


class Price(Part):
    """What a server costs in USD per hour, and the row of the price table it was read from."""

    instance: str
    region: str
    on_demand_usd_per_hour: float
    spot_usd_per_hour: float | None
    source: str

    def usd_per_hour(self, pricing: str) -> float | None:
        """By "on_demand" or "spot"; None where the table has no such price."""
        return {"on_demand": self.on_demand_usd_per_hour, "spot": self.spot_usd_per_hour}[pricing]


class TablesTask(Part):
    """`prices` are by the server's name; `seed` is that of the resampling."""

    study: str
    seed: int
    pricing: tuple[Literal["on_demand", "spot"], ...]
    prices: dict[str, Price]
