"""Make the task (settings) of each job that measures a cell, and find what the job depends on.

A job depends on code, software versions and the contents of the user's files. All repeats of a load
line have nearly the same values, so Perseus computes most values only once for all repeats.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from perseus.study import files, planning, provenance
from perseus.study.cells import Cell, Study
from perseus.study.file_contents import contents
from perseus.study.fingerprint import Sources
from perseus.study.tasks.measure import MeasureTask


class MeasureTasks:
    """Tasks of the cells of a study. The argument of each method is the id of a cell.

    The caller must not change a returned value, because several jobs share the same object.
    """

    def __init__(self, study: Study, sources: Sources) -> None:
        self._study = study
        self._first = cache(self._of_first)
        self._plain = cache(lambda repeated: self._first(repeated).plain())
        self._code = cache(lambda repeated: provenance.measure_code(sources, self._first(repeated)))
        self._versions = cache(self._versions_of_first)

    def task(self, cell: str) -> MeasureTask:
        of = self._study.cells[cell]
        return self._first(of.repeated).model_copy(update=_of_repeat(of))

    def plain(self, cell: str) -> dict[str, Any]:
        """Return the task of a cell as plain data: dictionaries, lists, strings and numbers."""
        of = self._study.cells[cell]
        return self._plain(of.repeated) | _of_repeat(of)

    def code(self, cell: str) -> str:
        """Return the fingerprint of the code that the job of a cell runs."""
        return self._code(self._study.cells[cell].repeated)

    def versions(self, cell: str) -> dict[str, Any]:
        """Return the versions of the packages that the server and the client of a cell use. Also
        return the fingerprints of the user's files that the job of the cell reads."""
        return self._versions(self._study.cells[cell].repeated)

    def _of_first(self, repeated: str) -> MeasureTask:
        return planning.measure_task(self._study, self._first_cell(repeated))

    def _versions_of_first(self, repeated: str) -> dict[str, Any]:
        return {
            **provenance.measure_versions(self._first(repeated)),
            **contents(files.own_files(self._study, self._first_cell(repeated))),
        }

    def _first_cell(self, repeated: str) -> Cell:
        return self._study.cells[f"{repeated}.r1"]


def _of_repeat(of: Cell) -> dict[str, Any]:
    """Return the fields of a task that differ between the repeats of a load line."""
    return {"cell": of.id, "repeat": of.repeat}
