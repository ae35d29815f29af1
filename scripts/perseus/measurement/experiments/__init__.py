"""How the experiments run on a server: a kind is a module of its name.

A new kind is a new module here (and its settings in study/experiments). It takes a server as
`server_under_test` has it, or starts servers itself, keeps its windows with `windows.keep`, and
returns its `Findings`: what stands in record.json besides what every cell has.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from perseus.measurement.cell import CellUnderTest, Findings
from perseus.study.tasks.measure import MeasureTask


class Experiment(Protocol):
    """What a module of this package offers."""

    def measure(self, cell: CellUnderTest) -> Findings:
        """Measure the cell. Raises BlockedError before a server is started where a dedicated peak
        is lacking; ServerError, VerificationError, ClientError and RouteError where nothing can be
        measured."""

    def nothing(self, cell: CellUnderTest) -> Mapping[str, Any]:
        """Its own keys of record.json, of a cell whose server could not be had."""

    def load_s(self, task: MeasureTask) -> tuple[float, float]:
        """Seconds of load that measuring the cell takes: about, and at most."""


def procedure(kind: str) -> Experiment:
    """The module of a kind of experiment."""
    return cast(Experiment, import_module(f"{__name__}.{kind}"))
