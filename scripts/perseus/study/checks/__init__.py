"""What the parts of a configuration say about each other and about the machine: one module for each
of its sections, and for what several say. Every check works on a definition whose form is right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perseus.study.checks import (
    demand,
    grids,
    measurement,
    models,
    scenarios,
    served_models,
    servers,
)
from perseus.study.definition import Definition
from perseus.study.problems import Problems
from perseus.study.tasks.tables import Price


def all_problems(
    study: Definition, folder: Path, prices: Sequence[Price], most_cores: int | None
) -> Problems:
    """Every problem with its place; paths in the configuration start from `folder`.

    most_cores: that a server may have on this machine, None where it is not known.
    """
    yield from models.problems(study, folder)
    yield from servers.problems(study, folder, prices)
    yield from measurement.problems(study, folder)
    yield from scenarios.problems(study, folder)
    yield from served_models.problems(study)
    yield from grids.problems(study, most_cores)
    yield from demand.problems(study, folder)
