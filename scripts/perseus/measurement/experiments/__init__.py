"""Run experiments. Each kind of experiment has its own module.

To add a kind of experiment, add a module to this package, and settings to study/experiments. The
new module gets a server from `server_under_test`, or starts servers with `started`. The module
stores its windows with `windows.keep`, and returns its results as `Findings`.
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

        If the cell needs a dedicated peak that is unknown, the function raises BlockedError, and
        starts no server. Raises ServerError, VerificationError, ClientError or RouteError if the
        server or a client fails before the experiment has a result.
        """

    def empty_record(self, cell: CellUnderTest) -> Mapping[str, Any]:
        """Return the keys that the experiment adds to record.json if no server ran for the cell."""

    def load_s(self, task: MeasureTask) -> tuple[float, float]:
        """Return how long the experiment offers load, in seconds: usually, and at most."""


def procedure(kind: str) -> Experiment:
    """Return the module that runs a kind of experiment."""
    return cast(Experiment, import_module(f"{__name__}.{kind}"))
