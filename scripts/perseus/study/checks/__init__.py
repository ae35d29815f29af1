"""Check whether the values of different keys of a configuration fit together.

For example, each scenario must name existing servers. Each section of a configuration has one
module. Before these checks, the module `validation` checks each key alone: its name, type and
bounds.
"""

from __future__ import annotations

from pathlib import Path

from perseus.study.checks import (
    costs,
    demand,
    grids,
    measurement,
    models,
    scenarios,
    served_models,
    servers,
    track,
)
from perseus.study.definition import Definition
from perseus.study.price_list import PriceList
from perseus.study.problems import Problems


def all_problems(
    study: Definition, folder: Path, prices: PriceList | None, most_cores: int | None
) -> Problems:
    """Yield every problem of a configuration with its place.

    Paths in the configuration are relative to `folder`. If the price list cannot be read, `prices`
    is None, and the function does not check prices. `most_cores` is the largest number of cores
    that a server on this machine can have, or None if unknown.
    """
    yield from models.problems(study, folder)
    yield from servers.problems(study, folder, prices)
    yield from costs.problems(study)
    yield from measurement.problems(study, folder)
    yield from scenarios.problems(study, folder)
    yield from served_models.problems(study)
    yield from grids.problems(study, most_cores)
    yield from demand.problems(study, folder, prices)
    yield from track.problems(study)
