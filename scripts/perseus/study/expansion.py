"""Replace each scenario that has a grid by several scenarios: one for each setting of the grid."""

from __future__ import annotations

from dataclasses import replace

from perseus.study.checks.grids import why_not
from perseus.study.definition import Definition
from perseus.study.scenario import ScenarioSettings
from perseus.study.variants import ScenarioGrid, variants


def expanded(
    study: Definition, most_cores: int | None
) -> tuple[Definition, tuple[ScenarioGrid, ...]]:
    """Return the definition without grids, and the grids.

    In the returned definition, several scenarios replace a scenario with a grid: one for each
    setting that Perseus can measure. The definition `study` must have passed all checks.
    `most_cores` is the largest number of cores that a server on this machine can have, or None if
    unknown.
    """
    servers = {server.name: server for server in study.servers}
    models = {model.name: model for model in study.models}
    scenarios: list[ScenarioSettings] = []
    grids: list[ScenarioGrid] = []
    for given in study.scenarios:
        item = given.model_copy(update={"name": given.result_name})
        if item.grid is None:
            scenarios.append(item)
            continue
        here = [servers[name] for name in item.servers]
        found = tuple(
            replace(each, why_not=why_not(each, models, most_cores))
            for each in variants(item, item.grid, here, models)
        )
        grids.append(ScenarioGrid(item, item.grid, found))
        for variant in found:
            if not variant.why_not:
                servers.setdefault(variant.server.name, variant.server)
                scenarios.append(variant.scenario)
    made = {"servers": tuple(servers.values()), "scenarios": tuple(scenarios)}
    return study.model_copy(update=made), tuple(grids)
