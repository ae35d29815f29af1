"""Read a study: check its configuration, and read the price list and the files that the
configuration names."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from perseus.study import each_architecture
from perseus.study.cells import Study
from perseus.study.checks import all_problems
from perseus.study.definition import Definition
from perseus.study.demand import Demand, levels_rps
from perseus.study.expansion import expanded
from perseus.study.image_files import LabelledImage, image_files, labelled_images
from perseus.study.model import Model
from perseus.study.presets import PRESETS
from perseus.study.price_list import PriceList, read_price_list
from perseus.study.pricing import price_of
from perseus.study.problems import ConfigError, path
from perseus.study.server import Server
from perseus.study.setting import configured
from perseus.study.stand_ins import may_follow
from perseus.study.tasks.tables import Price
from perseus.study.validation import validated

RENAMED = {("measurement", "precision"): "preset"}
"""Old names of keys, each with its new name. Perseus accepts an old name only if the value is the
name of a preset."""


def read_study(
    raw: Mapping[str, Any], *, prices: Path, folder: Path, most_cores: int | None = None
) -> Study:
    """Check a configuration, and return its study.

    `prices` is the path of the default price list, which Perseus uses unless the configuration
    names another price list. Paths in the configuration are relative to `folder`. `most_cores` is
    the largest number of cores that a server on the measuring machine can have, or None if unknown.
    The study leaves out grid settings that need more cores. Raises ConfigError, which lists all
    problems of the configuration.
    """
    try:
        plain = _plain(_with_new_names(raw))
    except RecursionError:
        raise ConfigError(["the configuration: a YAML anchor (&) contains itself"]) from None
    definition, problems, stand_ins = validated(plain)
    listed = None
    if definition is not None:
        of_many = [f"{path(at)}: {text}" for at, text in each_architecture.problems(definition)]
        if of_many:
            raise ConfigError([*problems, *of_many])
        given, definition = definition, each_architecture.with_each(definition)
        try:
            listed = _price_list(definition, prices, folder)
        except ConfigError as error:
            problems += error.problems
        found = all_problems(definition, folder, listed, most_cores)
        problems += [
            f"{path(place)}: {text}"
            for place, text in each_architecture.configured(given, found)
            if not may_follow(place, text, stand_ins)
        ]
    if problems or definition is None or listed is None:
        raise ConfigError(list(dict.fromkeys(problems)))
    made, grids = expanded(definition, most_cores)
    cores = {server.name: server.cores for server in definition.servers}
    offers = {
        server.name: tuple(
            price_of(server, row, listed, definition.costs) for row in server.price_rows
        )
        for server in definition.servers
    }

    def priced(server: Server) -> tuple[Price, ...]:
        """Return the prices of a server. In a grid that varies the number of cores, the price is
        proportional to the number of cores."""
        name = configured(server.name)
        return tuple(price.in_proportion(server.cores, cores[name]) for price in offers[name])

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
        labelled={model.name: _labelled(model, folder) for model in definition.models},
        prices={server.name: priced(server)[0] for server in made.servers if server.price},
        other_prices={server.name: priced(server)[1:] for server in made.servers},
        demand_rps=_demand_rps(definition.demand, folder),
        grids=grids,
    )


def _labelled(model: Model, folder: Path) -> tuple[LabelledImage, ...]:
    """Return the labelled images of a classification model, with paths relative to `folder`; empty
    for other models."""
    if not (model.images and model.is_classifier):
        return ()
    found = labelled_images(folder / model.images)
    return tuple(replace(each, file=str(Path(model.images, each.file))) for each in found)


def _demand_rps(demand: Demand | None, folder: Path) -> dict[str, tuple[float, ...]]:
    asked = demand.models if demand else ()
    return {each.name: levels_rps(each, demand, folder) for each in asked if demand}


def _price_list(study: Definition, default: Path, folder: Path) -> PriceList:
    """Read the price list that the study names, or the default price list. Raises ConfigError if
    the file is invalid."""
    if study.costs.prices is not None:
        return read_price_list(folder / study.costs.prices, study.costs.prices)
    return read_price_list(default, f"{default.parent.name}/{default.name}")


def _plain(value: Any) -> Any:
    """Return a value of the configuration with whole numbers in place of floats such as 8.0, and
    text in place of dates."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if type(value) is date:
        return value.isoformat()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _with_new_names(raw: Any) -> Any:
    """Replace old names of keys by their new names.

    If the configuration has the old and the new name of a key, the value of the old name wins. Only
    the user can have written the old name, but the new name may come from the default
    configuration.
    """
    raw = copy.deepcopy(raw)
    for (section, old), new in RENAMED.items():
        part = raw.get(section) if isinstance(raw, Mapping) else None
        if isinstance(part, dict) and part.get(old) in tuple(PRESETS):
            part[new] = part.pop(old)
    return raw
