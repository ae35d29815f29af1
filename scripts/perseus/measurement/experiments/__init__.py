"""Procedures of the experiments: one module per kind.

A new kind is a new module here, and its settings in study/experiments. It uses a server from
`server_under_test`, or starts servers itself. It stores its windows with `windows.keep`, and
returns its `Findings`: the keys that it adds to record.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from perseus.measurement.cell import CellUnderTest, Findings
from perseus.study.tasks.measure import MeasureTask


class Experiment(Protocol):
    """The interface of a module of this package."""

    def measure(self, cell: CellUnderTest) -> Findings:
        """Measure the cell.

        Raises BlockedError before a server is started if a dedicated peak is missing. Raises
        ServerError, VerificationError, ClientError and RouteError if the server cannot be measured.
        """

    def empty_record(self, cell: CellUnderTest) -> Mapping[str, Any]:
        """The experiment's keys of record.json for a cell without a server."""

    def load_s(self, task: MeasureTask) -> tuple[float, float]:
        """Return the seconds of load of the cell: usual and largest."""


def procedure(kind: str) -> Experiment:
    """Return the module of a kind of experiment."""
    return cast(Experiment, import_module(f"{__name__}.{kind}"))
