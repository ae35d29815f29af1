"""What `pack.py` tells `run.py`, which finds it as study.json."""

from __future__ import annotations

from perseus.study.base import Part
from perseus.study.tasks.export import ExportTask
from perseus.study.tasks.measure import MeasureTask
from perseus.study.tasks.repository import RepositoryTask
from perseus.study.tasks.tables import TablesTask


class Job(Part):
    """All tasks of a study: exports by model, tenants by scenario, and the cells in turn.

    `dedicated` names, by cell, the cells whose peaks it needs, `earlier` those that decide on its
    mix.
    """

    models: dict[str, ExportTask]
    tenants: dict[str, tuple[RepositoryTask, ...]]
    cells: tuple[MeasureTask, ...]
    dedicated: dict[str, tuple[str, ...]]
    earlier: dict[str, tuple[str, ...]]
    tables: TablesTask
