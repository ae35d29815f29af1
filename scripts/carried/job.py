"""Define the content of study.json: the tasks that `pack.py` writes and `run.py` executes."""

from __future__ import annotations

from pathlib import Path

from perseus.study.base import Part
from perseus.study.tasks.export import ExportTask
from perseus.study.tasks.measure import MeasureTask
from perseus.study.tasks.repository import RepositoryTask
from perseus.study.tasks.tables import TablesTask


class Job(Part):
    """All tasks of a study: exports of models, repositories of scenarios, and cells.

    A cell is one repeat of one measurement. The cells are in the order of their measurement. For
    each cell, `dedicated` names the cells with the dedicated peaks (peaks of a single model) that
    the cell needs. For each cell of a frontier, `earlier` names the cells whose results determine
    the mix of this cell. `files` has the paths of traces (recorded arrival times) that occur in the
    tasks.
    """

    models: dict[str, ExportTask]
    repositories: dict[str, RepositoryTask]
    cells: tuple[MeasureTask, ...]
    dedicated: dict[str, tuple[str, ...]]
    earlier: dict[str, tuple[str, ...]]
    tables: TablesTask
    files: tuple[str, ...]

    def carried(self, folder: Path) -> dict[str, Path]:
        """Return the unpacked path of each trace, by the path of the trace in the tasks.

        `folder` is the folder of the unpacked archive.
        """
        return {
            name: folder / "files" / str(i) / Path(name).name for i, name in enumerate(self.files)
        }
