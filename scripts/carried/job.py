"""Define the tasks in study.json, which `pack.py` writes and `run.py` reads."""

from __future__ import annotations

from pathlib import Path

from perseus.study.base import Part
from perseus.study.tasks.export import ExportTask
from perseus.study.tasks.measure import MeasureTask
from perseus.study.tasks.repository import RepositoryTask
from perseus.study.tasks.tables import TablesTask


class Job(Part):
    """All tasks of a study: exports by model, repositories by scenario, and the cells in the order
    of their measurement.

    For each cell, `dedicated` names the cells that measure the dedicated peaks which the cell
    needs. For each cell of a frontier, `earlier` names the cells whose results determine its mix.
    `files` has the paths of traces, as written in the tasks.
    """

    models: dict[str, ExportTask]
    repositories: dict[str, RepositoryTask]
    cells: tuple[MeasureTask, ...]
    dedicated: dict[str, tuple[str, ...]]
    earlier: dict[str, tuple[str, ...]]
    tables: TablesTask
    files: tuple[str, ...]

    def carried(self, folder: Path) -> dict[str, Path]:
        """Return the path of each trace in `folder`, the folder of the archive, by its path in the
        tasks."""
        return {
            name: folder / "files" / str(i) / Path(name).name for i, name in enumerate(self.files)
        }
