"""Tasks of a study's cells with code and versions; parts that repeats share are made once."""

from __future__ import annotations

from functools import cache
from typing import Any

from perseus.study import planning, provenance
from perseus.study.cells import Cell, Study
from perseus.study.fingerprint import Sources
from perseus.study.tasks.measure import MeasureTask


class MeasureTasks:
    """Tasks by the id of a cell, as `planning` and `provenance` make them.

    Jobs share the values, so do not change them.
    """

    def __init__(self, study: Study, sources: Sources) -> None:
        self._study = study
        self._first = cache(self._of_first)
        self._plain = cache(lambda repeated: self._first(repeated).plain())
        self._code = cache(lambda repeated: provenance.measure_code(sources, self._first(repeated)))
        self._versions = cache(lambda repeated: provenance.measure_versions(self._first(repeated)))

    def task(self, cell: str) -> MeasureTask:
        of = self._study.cells[cell]
        return self._first(of.repeated).model_copy(update=_of_repeat(of))

    def plain(self, cell: str) -> dict[str, Any]:
        """Return the task in plain form."""
        of = self._study.cells[cell]
        return self._plain(of.repeated) | _of_repeat(of)

    def code(self, cell: str) -> str:
        """Return the fingerprint of the code that its job runs."""
        return self._code(self._study.cells[cell].repeated)

    def versions(self, cell: str) -> dict[str, str]:
        """Return the versions of the software that serves and sends requests."""
        return self._versions(self._study.cells[cell].repeated)

    def _of_first(self, repeated: str) -> MeasureTask:
        """Return the values of the first repeat."""
        return planning.measure_task(self._study, self._study.cells[f"{repeated}.r1"])


def _of_repeat(of: Cell) -> dict[str, Any]:
    """Return values that differ between repeats."""
    return {"cell": of.id, "repeat": of.repeat}
