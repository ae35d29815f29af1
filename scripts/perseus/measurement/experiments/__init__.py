"""Run experiments, with one module per kind of experiment.

A new kind of experiment needs a new module in this package, and settings in study/experiments. The
module of an experiment uses a server from `server_under_test`, or starts servers itself. The module
stores its windows with `windows.keep`, and returns `Findings`: the keys that the experiment adds to
record.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from perseus.measurement.cell import CellUnderTest, Findings
from perseus.study.tasks.measure import MeasureTask


class Experiment(Protocol):
    """The functions that each module of an experiment must define."""

    def measure(self, cell: CellUnderTest) -> Findings:
        """Measure the cell.

        Raises BlockedError before the start of a server if a dedicated peak is missing. Raises
        ServerError, VerificationError, ClientError and RouteError if the function cannot measure
        the server.
        """

    def empty_record(self, cell: CellUnderTest) -> Mapping[str, Any]:
        """Return the keys that the experiment adds to record.json if no server ran for the cell."""

    def load_s(self, task: MeasureTask) -> tuple[float, float]:
        """Return the usual duration and the longest duration of the load, in seconds."""


def procedure(kind: str) -> Experiment:
    """Return the module that runs a kind of experiment."""
    return cast(Experiment, import_module(f"{__name__}.{kind}"))
