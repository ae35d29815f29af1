"""Read a study: its configuration, the price list, and the files that the configuration names."""

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
"""Old keys with their new names. Perseus accepts the old key `precision` only if its value is the
name of a preset."""


def read_study(
    raw: Mapping[str, Any], *, prices: Path, folder: Path, most_cores: int | None = None
) -> Study:
    """Read the study of a configuration.

    `prices` is the default price list; the configuration may name another price list. Paths in the
    configuration are relative to `folder`. `most_cores` is the largest number of cores that a
    server on the measuring machine can have, or None if unknown. If a setting of a grid has more
    than `most_cores` cores, the study leaves out this setting. Raises ConfigError with all problems
    of the configuration.
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
        """Return the prices of a server. If a grid varies the number of cores, the price is
        proportional to this number."""
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
    """Return the labelled images of a classification model, with paths relative to `folder`."""
    if not (model.images and model.is_classifier):
        return ()
    found = labelled_images(folder / model.images)
    return tuple(replace(each, file=str(Path(model.images, each.file))) for each in found)


def _demand_rps(demand: Demand | None, folder: Path) -> dict[str, tuple[float, ...]]:
    asked = demand.models if demand else ()
    return {each.name: levels_rps(each, demand, folder) for each in asked if demand}


def _price_list(study: Definition, default: Path, folder: Path) -> PriceList:
    """Return the price list that the study names, or the default price list. Raises ConfigError if
    the file of the price list is invalid."""
    if study.costs.prices is not None:
        return read_price_list(folder / study.costs.prices, study.costs.prices)
    return read_price_list(default, f"{default.parent.name}/{default.name}")


def _plain(value: Any) -> Any:
    """Return the value with whole numbers in place of floats such as 8.0, and text in place of
    dates."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if type(value) is date:
        return value.isoformat()
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _with_new_names(raw: Any) -> Any:
    """Return the configuration with old keys renamed to their new names.

    If the configuration has both an old key and the new key, the function uses the value of the old
    key. Only the user can have set the old key, because the default configuration has no old keys.
    """
    raw = copy.deepcopy(raw)
    for (section, old), new in RENAMED.items():
        part = raw.get(section) if isinstance(raw, Mapping) else None
        if isinstance(part, dict) and part.get(old) in tuple(PRESETS):
            part[new] = part.pop(old)
    return raw
