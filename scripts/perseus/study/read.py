"""Read a study: its configuration, the prices and the files that it names."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perseus.study.cells import Study
from perseus.study.checks import all_problems
from perseus.study.demand import Demand, levels_rps
from perseus.study.expansion import expanded
from perseus.study.form import read_form, stands_in
from perseus.study.image_files import image_files
from perseus.study.prices import read_prices
from perseus.study.problems import ConfigError, path
from perseus.study.setting import configured

RENAMED = {("measurement", "precision"): "preset"}
"""Keys that were called otherwise before, and still may be."""


def read_study(
    raw: Mapping[str, Any], *, prices: Path, folder: Path, most_cores: int | None = None
) -> Study:
    """The study that a configuration describes.

    prices: the price table. folder: where paths in the configuration start from. most_cores: that
    a server may have where it is measured, None where that is not known; settings of a grid with
    more are left out.

    Raises ConfigError with all problems found.
    """
    rows = read_prices(prices)
    definition, problems, stand_ins = read_form(_whole_numbers(_with_new_names(raw)))
    if definition is not None:
        problems += [
            f"{path(place)}: {text}"
            for place, text in all_problems(definition, folder, rows, most_cores)
            if not stands_in(place, stand_ins)
        ]
    if problems or definition is None:
        raise ConfigError(list(dict.fromkeys(problems)))
    named = {(row.instance, row.region): row for row in reversed(rows)}
    made, grids = expanded(definition, most_cores)
    cores = {server.name: server.cores for server in definition.servers}
    return Study(
        made,
        images={
            model.name: tuple(
                str(Path(model.images, file.name)) for file in image_files(folder / model.images)
            )
            if model.images
            else ()
            for model in definition.models
        },
        prices={
            server.name: named[server.price.instance, server.price.region].in_proportion(
                server.cores, cores[configured(server.name)]
            )
            for server in made.servers
        },
        demand_rps=_demand_rps(definition.demand, folder),
        grids=grids,
    )


def _demand_rps(demand: Demand | None, folder: Path) -> dict[str, tuple[float, ...]]:
    asked = demand.models if demand else ()
    return {each.name: levels_rps(each, demand, folder) for each in asked if demand}


def _whole_numbers(value: Any) -> Any:
    """8 for 8.0: YAML tells them apart, its writers do not. (A `Real` takes both.)"""
    if isinstance(value, dict):
        return {key: _whole_numbers(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _with_new_names(raw: Any) -> Any:
    """What stands under an old name is moved, and wins: it was set by who uses it."""
    raw = copy.deepcopy(raw)
    for (section, old), new in RENAMED.items():
        part = raw.get(section) if isinstance(raw, Mapping) else None
        if isinstance(part, dict) and old in part:
            part[new] = part.pop(old)
    return raw
