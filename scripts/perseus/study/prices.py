"""The price table: a CSV file with the columns of SkyPilot's catalogues."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from perseus.study.problems import ConfigError
from perseus.study.tasks.tables import Price


def read_prices(path: Path) -> list[Price]:
    """The machines of the price table that have an on-demand price, in USD per hour.

    Raises ConfigError for a price that is not a number and for a missing column.
    """
    name = f"{path.parent.name}/{path.name}"
    prices, problems = [], []
    with path.open(newline="") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            try:
                if row["InstanceType"] and row["Price"]:
                    prices.append(_price(row))
            except KeyError as error:
                raise ConfigError([f"{name}: has no column {error}"]) from None
            except ValueError as error:
                problems.append(f"{name} line {line}: {error} (USD per hour)")
    if problems:
        raise ConfigError(problems)
    return prices


def _price(row: Mapping[str, str]) -> Price:
    """Raises ValueError for a price that is not a number above 0."""
    return Price(
        instance=row["InstanceType"],
        region=row["Region"],
        on_demand_usd_per_hour=_above_zero(row["Price"]),
        spot_usd_per_hour=_above_zero(row["SpotPrice"]) if row["SpotPrice"] else None,
        source=row["Source"],
    )


def _above_zero(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(f"a price must be above 0, not {text}")
    return value
