"""Checks of a configuration: one module for each section. Every check works on a definition that
is valid by itself."""

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
    """Every problem with its place; paths in the configuration are relative to `folder`.

    prices: None where the list cannot be read. most_cores: that a server may have on this machine,
    None where it is not known.
    """
    yield from models.problems(study, folder)
    yield from servers.problems(study, folder, prices)
    yield from costs.problems(study)
    yield from measurement.problems(study, folder)
    yield from scenarios.problems(study, folder)
    yield from served_models.problems(study)
    yield from grids.problems(study, most_cores)
    yield from demand.problems(study, folder)
    yield from track.problems(study)
